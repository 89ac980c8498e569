use super::*;

fn frame(worker: &str) -> Frame {
    let unanswered = vec![ClaimMark::new()];
    Frame { ledger: Uuid::from_u128(9), worker: worker.into(), outcomes: Vec::new(), unanswered }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal");
    (directory, path)
}

#[test]
fn r11_frames_are_there_again_until_they_are_cleared() {
    let (_directory, path) = place();
    let (mut file, content) = JournalFile::open(&path).expect("a file");
    assert!(content.frames.is_empty() && file.length() == 0);
    let frames = [frame("a"), frame("b")];
    for frame in &frames {
        file.append(frame).expect("appended");
    }
    drop(file);
    let (mut file, content) = JournalFile::open(&path).expect("the same");
    assert_eq!((content.frames.as_slice(), content.torn), (&frames[..], 0));
    assert_eq!(file.metadata_mode(), 0o600);
    file.clear().expect("cleared");
    drop(file);
    assert!(JournalFile::open(&path).expect("the same").1.frames.is_empty());
}

#[test]
fn r11_a_torn_last_frame_is_taken_off_and_the_others_stand() {
    let (_directory, path) = place();
    let (mut file, _) = JournalFile::open(&path).expect("a file");
    let first = frame("a");
    file.append(&first).expect("appended");
    file.append(&frame("a longer name")).expect("appended");
    drop(file);
    let whole = std::fs::read(&path).expect("bytes");
    let kept = written(&first).len();
    for cut in [kept + 1, kept + 20, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).expect("torn");
        let (mut file, content) = JournalFile::open(&path).expect("it opens");
        assert_eq!(content.frames, std::slice::from_ref(&first));
        assert_eq!(content.torn, u64::try_from(cut - kept).expect("a length"));
        let next = frame("b");
        file.append(&next).expect("appended");
        drop(file);
        assert_eq!(JournalFile::open(&path).expect("it opens").1.frames, [first.clone(), next]);
    }
    // Blocks that a power cut has left empty.
    let mut zeros = whole[..kept].to_vec();
    zeros.extend([0; 5000]);
    std::fs::write(&path, &zeros).expect("zeros");
    assert_eq!(JournalFile::open(&path).expect("it opens").1.frames, [first]);
}

#[test]
fn r11_what_failed_appends_have_left_does_not_make_a_journal_unreadable() {
    let (_directory, path) = place();
    let (mut file, _) = JournalFile::open(&path).expect("a file");
    let frames = [frame("a"), frame("b")];
    file.append(&frames[0]).expect("appended");
    // Two that were written and could not be synced, the second one shorter than the first.
    for name in ["x".repeat(900), "y".repeat(600)] {
        file.file.write_all_at(&written(&frame(&name)), file.end).expect("written");
    }
    file.append(&frames[1]).expect("appended");
    drop(file);
    let (_, content) = JournalFile::open(&path).expect("it opens");
    assert_eq!((content.frames.as_slice(), content.torn), (&frames[..], 0));
}

#[test]
fn r11_what_was_damaged_before_its_end_is_refused_and_left_alone() {
    let (_directory, path) = place();
    let (mut file, _) = JournalFile::open(&path).expect("a file");
    file.append(&frame("a")).expect("appended");
    file.append(&frame("b")).expect("appended");
    drop(file);
    let mut bytes = std::fs::read(&path).expect("bytes");
    bytes[30] ^= 1;
    std::fs::write(&path, &bytes).expect("damaged");
    let refused = JournalFile::open(&path).expect_err("refused");
    assert!(matches!(refused, JournalError::Unreadable { frame: 1, .. }), "{refused}");
    assert!(look(&path).is_err());
    assert_eq!(std::fs::read(&path).expect("bytes"), bytes);
}

#[test]
fn two_cannot_have_one_journal() {
    let (_directory, path) = place();
    assert_eq!(look(&path).expect("a look"), Look::Absent);
    let (file, _) = JournalFile::open(&path).expect("a file");
    let refused = JournalFile::open(&path).expect_err("refused");
    assert!(matches!(refused, JournalError::InUse(_)), "{refused}");
    assert_eq!(look(&path).expect("a look"), Look::InUse);
    drop(file);
    assert_eq!(look(&path).expect("a look"), Look::Holds(0));
}

impl JournalFile {
    fn metadata_mode(&self) -> u32 {
        self.file.metadata().expect("metadata").permissions().mode() & 0o777
    }
}

#[test]
fn r11_frames_that_could_not_be_synced_leave_nothing_behind() {
    let (_directory, path) = place();
    let (mut file, _) = JournalFile::open(&path).expect("a file");
    let full = |_: &File| Err(io::Error::from(io::ErrorKind::StorageFull));
    for name in ["the longest name of them all", "a shorter name"] {
        file.append_and(&frame(name), full).expect_err("not synced");
    }
    let last = frame("a");
    file.append(&last).expect("appended");
    drop(file);
    let (_, content) = JournalFile::open(&path).expect("it opens");
    assert_eq!((content.frames, content.torn), (vec![last], 0));
}
