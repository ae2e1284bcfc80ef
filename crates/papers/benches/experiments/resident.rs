//! The resident memory of the process, if the system reports it (Linux).

/// The resident memory in bytes; 0 if it is not known.
pub fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|word| word.parse::<i64>().ok()).unwrap_or(0) * 1024
}
