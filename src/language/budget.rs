//! Amounts of money as people write them.

use crate::domain::money::Usd;

/// Reads an amount in US dollars.
///
/// # Errors
/// A text that says what is expected.
pub fn dollars(text: &str) -> Result<Usd, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(Usd::from_dollars(amount)),
        _ => Err("write an amount in US dollars, such as 2 or 0.50".to_owned()),
    }
}

/// Reads a budget, which is above zero.
///
/// # Errors
/// A text that says what is expected.
pub fn budget(text: &str) -> Result<Usd, String> {
    match dollars(text)? {
        Usd::ZERO => {
            Err("write an amount above 0, because nothing can be asked without money".to_owned())
        }
        amount => Ok(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_an_amount_above_zero() {
        assert_eq!(budget("$0.50"), Ok(Usd::from_dollars(0.5)));
        for none in ["0", "$0.00", "-1", "lots", "inf", ""] {
            assert!(budget(none).is_err(), "{none}");
        }
        assert_eq!(dollars("0"), Ok(Usd::ZERO));
    }
}
