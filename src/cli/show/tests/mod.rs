//! Pages, by kind of story.

mod doubt;
mod fixture;
mod settled;
