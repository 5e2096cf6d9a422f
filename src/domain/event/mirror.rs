//! The macro that the stored and the public form of events are defined with.
//!
//! Each form names all its fields itself. The conversion takes the event apart without `..`, so it does not compile
//! when a field is added to one form only. No field reaches a form by accident, or is lost in it.

/// Defines a struct with the fields of an event of the domain, and the conversion from it.
macro_rules! mirror_of_event {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident of $event:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $kind:ty,)+
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $kind,)+
        }

        impl From<$crate::domain::event::$event> for $name {
            fn from(event: $crate::domain::event::$event) -> Self {
                let $crate::domain::event::$event { $($field),+ } = event;
                Self { $($field),+ }
            }
        }
    };
}

/// Like [`mirror_of_event`], with the conversion back.
macro_rules! two_way_mirror_of_event {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident of $event:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $kind:ty,)+
        }
    ) => {
        mirror_of_event! {
            $(#[$meta])*
            $vis struct $name of $event {
                $($(#[$field_meta])* $field_vis $field: $kind,)+
            }
        }

        impl From<$name> for $crate::domain::event::$event {
            fn from(stored: $name) -> Self {
                let $name { $($field),+ } = stored;
                Self { $($field),+ }
            }
        }
    };
}
