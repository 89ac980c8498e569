//! Links of the documents: to their own headings, and to files of the tree.

use std::collections::BTreeSet;
use std::path::Path;

use super::{read, regex, root};

/// The anchors of a document's headings, as GitHub makes them: lower case, punctuation gone, blanks into hyphens.
fn anchors(text: &str) -> BTreeSet<String> {
    let kept = |c: char| c.is_alphanumeric() || "-_ ".contains(c);
    let headings = text
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    headings
        .map(|heading| heading.to_lowercase().chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_within_the_tree_leads_somewhere() {
    let link = regex(r"\]\(([^)\s]+)\)");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for path in ["README.md", "CHANGELOG.md", "tests/README.md"] {
        let text = read(path);
        let own = anchors(&text);
        for found in link.captures_iter(&text).map(|found| found[1].to_owned()) {
            let leads = match (found.strip_prefix('#'), found.contains("://")) {
                (_, true) => continue,
                (Some(anchor), _) => own.contains(anchor),
                (None, _) => Path::new(path).parent().is_some_and(|from| root().join(from).join(&found).exists()),
            };
            seen += 1;
            if !leads {
                wrong.push(format!("{path}: {found}"));
            }
        }
    }
    assert!(seen > 20, "only {seen} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
