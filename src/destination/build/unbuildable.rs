//! Why no valid request can be built. Names what is wrong, never a value.

use super::headers::Rule;
use super::planting::What;

/// Why no valid request can be built. Names come from the configuration or have been checked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(in crate::destination) enum Unbuildable {
    #[error("the base URL is not a usable http URL once it is filled in")]
    BaseUrl,
    #[error("the method is not one that can be sent")]
    Method,
    #[error("path and query do not make a valid URL once they are filled in")]
    Path,
    #[error("a path segment would be `.` or `..` once it is filled in")]
    DotSegment,
    #[error("params are not a JSON object")]
    ParamsNotObject,
    #[error("param `{0}` is missing")]
    ParamMissing(String),
    #[error("param `{0}` is not a string, number or boolean")]
    ParamNotScalar(String),
    #[error("param `{0}` is empty where the path or host needs a value")]
    ParamEmpty(String),
    #[error("param `{0}` is not part of a host name")]
    ParamNotHost(String),
    #[error("headers are not a JSON object")]
    HeadersNotObject,
    #[error("there are too many headers, or too long ones")]
    HeadersTooLong,
    #[error("the name of header {0} (counted from 1) is not a token (RFC 9110 section 5.6.2)")]
    HeaderName(usize),
    #[error("the value of header `{0}` is not a string of visible ASCII characters")]
    HeaderValue(String),
    #[error("header `{0}` is given twice")]
    HeaderTwice(String),
    #[error("header `{name}` cannot be given: {rule}")]
    HeaderReserved { name: String, rule: Rule },
    #[error("the destination's credentials cannot be sent as a header")]
    Credentials,
    #[error("{what} cannot be sent as a header")]
    NotAHeader { what: What },
    #[error("the path has no placeholder `{name}` for {what}")]
    NotInPath { name: String, what: What },
    #[error("the body has no place `{pointer}` for {what}")]
    NotInJson { pointer: String, what: What },
    #[error("the body is not form-encoded text, which {what} goes into")]
    NotInForm { what: What },
}
