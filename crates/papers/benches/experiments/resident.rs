//! What the system reports of the memory of the process (Linux): the resident memory and
//! page faults.

/// The most resident memory that the process had, in bytes; 0 if it is not known.
pub fn most_resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|word| word.parse::<i64>().ok()).unwrap_or(0) * 1024
}

/// The minor page faults of the process so far; 0 if they are not known.
pub fn faults() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name of the program: the state is the first word, minor faults the eighth.
    let words = text.rsplit_once(')').map_or("", |(_, words)| words);
    let word = words.split_whitespace().nth(7);
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}
