//! What this version refuses although the design has it. A later version deletes the lines it makes true; keys that
//! are not supported yet stand in the reference as [`super::reference::Need::Later`].

/// Of a key or a name that is known but not supported.
pub(super) const NOT_YET: &str = "is not supported by this version";
