//! Where messages to people go: above the live view if there is one, else straight to the stream.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A shared way to the person in front of the screen.
#[derive(Clone)]
pub struct Terminal {
    plain: Arc<Mutex<Box<dyn Write + Send>>>,
    live: Option<ProgressBar>,
}

impl Terminal {
    /// Plain lines, for a pipe or a file.
    #[must_use]
    pub fn plain(stream: impl Write + Send + 'static) -> Self {
        Self { plain: Arc::new(Mutex::new(Box::new(stream))), live: None }
    }

    /// A live area on the terminal behind stderr, which lines are printed above.
    #[must_use]
    pub fn live() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(
            ProgressStyle::with_template("{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(Duration::from_secs(1));
        Self { live: Some(bar), ..Self::plain(std::io::stderr()) }
    }

    /// Whether there is a live area.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Prints a line. A reader who is gone is not an error.
    pub fn line(&self, text: &str) {
        match &self.live {
            Some(bar) if !bar.is_finished() => bar.println(text),
            _ => {
                let mut stream = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = writeln!(stream, "{text}").and_then(|()| stream.flush());
            }
        }
    }

    /// Redraws the live area.
    pub fn draw(&self, rows: &[String]) {
        if let Some(bar) = self.live.as_ref().filter(|bar| !bar.is_finished()) {
            bar.set_message(rows.join("\n"));
        }
    }

    /// Takes the live area away.
    pub fn clear(&self) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
    }
}
