//! Pages, by kind of story.

mod doubt;
mod fixture;
mod ruled_out;
mod settled;
