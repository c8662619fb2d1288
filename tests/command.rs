//! The command `hedgerow` as a process: its exit codes, its JSON, and what it makes of bad input.

use crate::stores::{Numbers, Place, texts};
use hedgerow::Store;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// What a run of the command left behind.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the command starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command writes text");
        Self { code: status.code().expect("it was not killed"), out: text(stdout), err: text(stderr) }
    }

    /// The last line of standard output, which is JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let last = self.out.lines().next_back().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in {last:?}; it said {}", self.err))
    }
}

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_hedgerow-tested"))
}

fn run(arguments: &[&str]) -> Run {
    Run::of(command().args(arguments))
}

/// Runs the command with `--json` and reads its last line.
#[track_caller]
pub fn told(arguments: &[&str]) -> Value {
    let run = run(&[arguments, &["--json"]].concat());
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.err);
    run.json()
}

/// A folder with these files in it, and the path of a store beside it.
pub struct Folder {
    folder: TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("there is room for a temporary folder") }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("the path is text").to_owned()
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = PathBuf::from(self.path(name));
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("the folder can be made");
        fs::write(&path, bytes).expect("the file can be written");
        self.path(name)
    }

    pub fn store(&self) -> String {
        self.path("store")
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().expect("it is a list").iter().map(|item| item.as_str().expect("it is text")).collect()
}

/// So many documents, one a line.
fn lines_of(count: usize) -> String {
    let line = |row: usize| json!({"id": format!("d{row}"), "text": format!("Text number {row}.")}).to_string() + "\n";
    (0..count).map(line).collect()
}

fn is_list_of(value: &Value, fields: &[&str]) -> bool {
    let list = value.as_array().expect("it is a list");
    !list.is_empty() && list.iter().all(|item| fields.iter().all(|field| !item[field].is_null()))
}

#[test]
fn the_demo_reaches_by_the_graph_what_flat_search_misses() {
    let folder = Folder::new();
    let told = told(&["demo", "--keep", &folder.store()]);
    let [airline, music] = told.as_array().expect("it is a list").as_slice() else { panic!("two questions are asked") };
    let runbook = "airline/stand-conflict-runbook.md";
    assert!(airline["question"].as_str().is_some_and(|question| question.contains("INC-2209")));
    assert_eq!(airline["answer"], runbook);
    assert!(strings(&airline["graph"]).contains(&runbook) && strings(&airline["graph"]).len() <= 4, "{airline}");
    assert!(!strings(&airline["flat"]).contains(&runbook) && strings(&airline["flat"]).len() == 4, "{airline}");
    assert_eq!(music["answer"], "pink-floyd/the-wall");
    assert!(strings(&music["graph"]).contains(&"pink-floyd/the-wall"), "{music}");
    let question = music["question"].as_str().expect("it is text");
    let answer = crate::command::told(&["ask", &folder.store(), question, "-k", "2", "--neighbours", "2"]);
    let passages = answer["passages"].as_array().expect("it is a list");
    let wall =
        passages.iter().find(|passage| passage["document"] == "pink-floyd/the-wall").expect("The Wall is reached");
    let path: Vec<&str> =
        wall["path"].as_array().expect("it is a list").iter().filter_map(|step| step["node"].as_str()).collect();
    assert_eq!(path, ["chunk:pink-floyd/pink-floyd#0", "entity:The Wall", "chunk:pink-floyd/the-wall#0"]);
}

#[test]
fn the_demo_in_words_shows_flat_beside_graph_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let output = command().arg("demo").env("TMPDIR", folder.folder.path()).output().expect("the command starts");
    let out = String::from_utf8(output.stdout).expect("it is text");
    assert!(output.status.success() && out.contains("Stand Conflict Runbook") && out.contains("The Wall"), "{out}");
    assert_eq!(fs::read_dir(folder.folder.path()).expect("it can be read").count(), 0);
}

#[test]
fn the_main_path_has_the_json_that_was_agreed() {
    let folder = Folder::new();
    folder.write("notes/bridge.md", "# Dover Bridge\n\nDover Bridge is owned by Kent Council. It was built in 1965.\n");
    folder.write(
        "notes/inner/council.txt",
        "Kent Council\n\nKent Council depends on County Hall. It runs Dover Bridge.\n",
    );
    folder.write(
        "notes/more.jsonl",
        "{\"key\":\"hall\",\"title\":\"County Hall\",\"text\":\"County Hall is in Maidstone.\",\"year\":1910}\n",
    );
    let store = folder.store();
    let ingested = told(&["ingest", &store, &folder.path("notes")]);
    assert_eq!((&ingested["added"], &ingested["rejected_count"]), (&json!(3), &json!(0)), "{ingested}");
    let documents = told(&["ls", &store]);
    let keys: Vec<&Value> = documents.as_array().expect("it is a list").iter().map(|line| &line["key"]).collect();
    assert_eq!(keys, ["hall", "notes/bridge.md", "notes/inner/council.txt"]);
    assert!(is_list_of(&told(&["ls", &store, "entities"]), &["name", "kind", "mentions", "definitions"]));
    assert!(is_list_of(&told(&["ls", &store, "relations"]), &["subject", "predicate", "object", "weight", "evidence"]));
    let answer = told(&["ask", &store, "Who owns Dover Bridge?", "--tokens", "500"]);
    let fields = ["key", "document", "text", "start", "end", "source", "score", "legs", "path"];
    assert!(is_list_of(&answer["passages"], &fields) && answer["trace"].is_object(), "{answer}");
    assert_eq!((&answer["strategy"], &answer["incomplete"]), (&json!("graph"), &json!([])));
    for filter in ["metadata.year = 1910", "metadata.year < 1911 and not (title ~ \"BRIDGE\" or key in [\"x\"])"] {
        let answer = told(&["ask", &store, "Maidstone", "--filter", filter]);
        assert_eq!(answer["passages"][0]["document"], "hall", "{filter}");
    }
    let compared = told(&["compare", &store, "Who owns Dover Bridge?"]);
    assert!(compared["flat"]["passages"].is_array() && compared["graph"]["passages"].is_array());
    let expanded = told(&["expand", &store, "Kent Council", "--hops", "2"]);
    assert!(is_list_of(&expanded["nodes"], &["key", "hop", "score", "path"]), "{expanded}");
    assert_eq!(told(&["show", &store, "hall"])["title"], "County Hall");
    assert_eq!(told(&["show", &store, "chunk:hall#0"])["text"], "County Hall is in Maidstone.");
    assert_eq!(told(&["show", &store, "entity:county hall"])["name"], "County Hall");
    let edges = told(&["edges", &store, "--percentile", "50", "--top-m", "2"]);
    assert_eq!((&edges["kinds"][0]["pairs"], &edges["space"]), (&json!(3), &json!("static")), "{edges}");
    let stats = told(&["stats", &store]);
    assert_eq!((&stats["documents"], &stats["incomplete"]), (&json!(3), &json!([])), "{stats}");
    assert_eq!(told(&["verify", &store])["problems"], json!([]));
    assert_eq!(told(&["rm", &store, "hall"])["removed"], 1);
    assert_eq!(told(&["stats", &store])["documents"], 2);
    assert_eq!(run(&["show", &store, "hall"]).code, 3);
}

#[test]
fn what_is_imported_again_changes_nothing() {
    let folder = Folder::new();
    let documents = folder.write(
        "d.jsonl",
        "{\"id\":\"a\",\"text\":\"Alice met Carol in Dover.\"}\n{\"id\":\"b\",\"text\":\"Dover.\"}\n",
    );
    let triples = folder.write(
        "t.jsonl",
        "{\"subject\":\"Dover\",\"predicate\":\"lies in\",\"object\":\"Kent\"}\n\
        {\"subject\":\"Alice\",\"predicate\":\"knows\",\"object\":\"Carol\",\"document\":\"a\",\"weight\":2}\n",
    );
    let import = || told(&["import", &folder.store(), "--documents", &documents, "--triples", &triples]);
    let first = import();
    assert_eq!((&first["documents"]["added"], &first["triples"]["added"]), (&json!(2), &json!(2)), "{first}");
    let second = import();
    assert_eq!((&second["documents"]["added"], &second["documents"]["unchanged"]), (&json!(0), &json!(2)), "{second}");
    assert_eq!((&second["triples"]["added"], &second["generation"]), (&json!(0), &first["generation"]), "{second}");
    let relations = told(&["ls", &folder.store(), "relations"]);
    let triples: Vec<&Value> =
        relations.as_array().expect("it is a list").iter().map(|line| &line["predicate"]).collect();
    assert_eq!(triples, ["knows", "lies in"], "{relations}");
    assert_eq!(relations[0]["evidence"], json!(["a#0"]));
    let source = relations[1]["evidence"][0].as_str().expect("it is a key").to_owned();
    assert!(source.starts_with("import:"), "{source}");
    told(&["rm", &folder.store(), &source]);
    assert_eq!(run(&["show", &folder.store(), "entity:Kent"]).code, 3);
}

#[test]
fn of_a_key_that_stands_twice_the_last_one_counts_in_one_batch_and_in_two() {
    let folder = Folder::new();
    let line = |text: &str| format!("{{\"key\":\"a\",\"text\":\"{text}\"}}\n");
    let documents = folder.write("d.jsonl", [line("First."), line("Second.")].concat());
    let import = |file: &str, batch: &str| {
        let run = run(&["import", &folder.store(), "--documents", file, "--batch", batch]);
        assert_eq!(run.code, 0, "{}", run.err);
        run.err
    };
    let said = import(&documents, "10");
    assert!(said.contains("d.jsonl:1") && said.contains("d.jsonl:2"), "{said}");
    let text = || texts(&hedgerow::Snapshot::open(folder.store()).expect("the store opens"))["a"].clone();
    assert_eq!(text(), "Second.");
    // The store has the last one already, and another one comes before it.
    let many = folder.write("e.jsonl", [line("Third."), line("Second.")].concat());
    for batch in ["10", "1"] {
        import(&many, batch);
        assert_eq!(text(), "Second.", "in batches of {batch}");
    }
}

/// A matrix in the format of `.npy`.
fn npy<const N: usize>(rows: &[[f32; N]]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {N}), }}", rows.len());
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend(118_u16.to_le_bytes());
    npy.extend(format!("{header:<117}\n").into_bytes());
    rows.iter().flatten().for_each(|component| npy.extend(component.to_le_bytes()));
    npy
}

#[test]
fn the_bench_of_edges_measures_a_build_and_what_is_added() {
    let folder = Folder::new();
    let mut numbers = Numbers(4);
    let rows: Vec<[f32; 6]> = (0..120).map(|_| std::array::from_fn(|_| numbers.component())).collect();
    let matrix = folder.write("v.npy", npy(&rows));
    let measure =
        |more: &[&str]| told(&[&["bench", "edges", "--vectors", &matrix, "--percentile", "90"], more].concat());
    let all = measure(&["--added", "10"]);
    assert_eq!((&all["rows"], &all["pairs"], &all["added"]), (&json!(120), &json!(7140), &json!(12)), "{all}");
    assert!(all["seconds"].as_f64() > Some(0.0) && all["added_seconds"].as_f64() > Some(0.0), "{all}");
    let alone = measure(&["--threads", "1"]);
    assert_eq!((&alone["edges"], &alone["added"]), (&all["edges"], &Value::Null));
    let peak = ["int8_peak_tops", "share_of_peak", "scan_share_of_peak"].map(|name| alone[name].as_f64());
    assert!(peak.iter().all(|figure| *figure > Some(0.0)), "{alone}");
    let made = told(&["bench", "edges", "--synthetic", "90x12", "--rows", "80", "--percentile", "90"]);
    assert_eq!((&made["rows"], &made["dimensions"], &made["pairs"]), (&json!(80), &json!(12), &json!(3160)), "{made}");
    let run = run(&["bench", "edges", "--vectors", &folder.write("zero.npy", npy(&[[0_f32; 3]])), "--json"]);
    assert!(run.code == 2 && run.err.contains("row 0"), "{}", run.err);
}

#[test]
fn vectors_that_cannot_be_are_rejected_with_their_row() {
    let folder = Folder::new();
    let lines = lines_of(5);
    let documents = folder.write("d.jsonl", lines);
    let rows: [[f32; 2]; 5] = [[1.0, 0.0], [f32::NAN, 1.0], [0.0, 0.0], [0.6, 0.8], [1.0, f32::INFINITY]];
    let matrix = folder.write("v.npy", npy(&rows));
    let ids = folder.write("ids.txt", "d0\nd1\nd2\nnowhere\nd4\n");
    let arguments = [
        "import",
        &folder.store(),
        "--documents",
        &documents,
        "--embedder",
        "none",
        "--vectors",
        &matrix,
        "--ids",
        &ids,
        "--space",
        "v",
        "--json",
    ];
    let run = run(&arguments);
    assert_eq!(run.code, 1, "{}", run.err);
    let told = run.json();
    assert_eq!((&told["vectors"]["added"], &told["rejected_count"]), (&json!(1), &json!(4)), "{told}");
    let lines: Vec<&Value> =
        told["rejected"].as_array().expect("it is a list").iter().map(|record| &record["line"]).collect();
    assert_eq!(lines, [2, 3, 4, 5], "{told}");
    assert_eq!(crate::command::run(&["verify", &folder.store()]).code, 0);
}

#[test]
fn files_in_odd_encodings_are_read_and_those_without_text_are_rejected_and_listed() {
    let folder = Folder::new();
    folder.write("in/good.txt", "A good text.");
    folder.write("in/empty.txt", "");
    folder.write("in/blank.md", " \n\t\n");
    folder.write("in/binary.txt", [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 3]);
    folder.write("in/latin.txt", b"Caf\xe9 in Orl\xe9ans.");
    let utf16: Vec<u8> = "\u{feff}Größe.".encode_utf16().flat_map(u16::to_le_bytes).collect();
    folder.write("in/utf16.txt", utf16);
    folder.write("in/picture.png", [0x89, b'P', b'N', b'G']);
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path("in"), folder.path("in/loop")).expect("a link can be made");
    let run = run(&["ingest", &folder.store(), &folder.path("in"), "--json"]);
    assert_eq!(run.code, 1, "{}", run.err);
    let told = run.json();
    let rejected: Vec<String> = told["rejected"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|record| record["file"].as_str().expect("it is text").to_owned())
        .collect();
    for name in ["in/empty.txt", "in/blank.md", "in/binary.txt"] {
        assert!(rejected.contains(&folder.path(name)), "{name} is not among {rejected:?}");
        assert!(run.err.contains(name), "{name} is not listed: {}", run.err);
    }
    let found = texts(&hedgerow::Snapshot::open(folder.store()).expect("the store opens"));
    let expected = [("in/good.txt", "A good text."), ("in/latin.txt", "Café in Orléans."), ("in/utf16.txt", "Größe.")];
    assert_eq!(found.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect::<Vec<_>>(), expected);
}

#[test]
fn lines_that_are_no_documents_are_rejected_with_file_line_and_reason_and_the_others_are_taken() {
    let folder = Folder::new();
    let lines = [
        "{\"id\":\"good\",\"text\":\"Text.\"}",
        "not json",
        "[1, 2]",
        "{\"text\":\"no key\"}",
        "{\"key\":7,\"text\":\"a number\"}",
        "{\"key\":\"x\",\"text\":{}}",
        "{\"key\":\"y\",\"chunks\":[{\"text\":\"\"}]}",
        "",
        "{\"id\":\"last\",\"text\":\"Text.\",\"year\":2020}",
    ];
    let documents = folder.write("d.jsonl", lines.join("\n"));
    let run = run(&["import", &folder.store(), "--documents", &documents, "--json"]);
    assert_eq!(run.code, 1, "{}", run.err);
    let told = run.json();
    let rejected: Vec<u64> = told["rejected"]
        .as_array()
        .expect("it is a list")
        .iter()
        .filter_map(|record| record["line"].as_u64())
        .collect();
    let mut sorted = rejected.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [2, 3, 4, 5, 6, 7], "{told}");
    for line in 2..8 {
        assert!(run.err.contains(&format!("d.jsonl:{line}: ")), "{}", run.err);
    }
    assert_eq!(told["documents"]["added"], 2);
}

#[test]
fn a_second_writer_ends_with_six_and_readers_go_on() {
    let folder = Folder::new();
    let documents = folder.write("d.jsonl", "{\"id\":\"a\",\"text\":\"Dover.\"}\n");
    told(&["import", &folder.store(), "--documents", &documents]);
    let held = Store::open(folder.store()).expect("the store opens");
    for arguments in [
        &["import", &folder.store(), "--documents", &documents][..],
        &["rm", &folder.store(), "a"],
        &["edges", &folder.store()],
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, 6, "{}", refused.err);
        assert!(refused.err.contains(&std::process::id().to_string()), "{}", refused.err);
    }
    assert_eq!(told(&["ask", &folder.store(), "Dover"])["passages"][0]["key"], "a#0");
    drop(held);
    told(&["rm", &folder.store(), "a"]);
}

#[test]
fn what_is_not_there_ends_with_three_and_makes_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    let commands: [&[&str]; 9] = [
        &["ask", &store, "q"],
        &["compare", &store, "q"],
        &["expand", &store, "k"],
        &["show", &store, "k"],
        &["ls", &store],
        &["rm", &store, "k"],
        &["stats", &store],
        &["verify", &store],
        &["edges", &store],
    ];
    for arguments in commands {
        let run = run(arguments);
        assert_eq!(run.code, 3, "{arguments:?}: {}", run.err);
        assert!(!Path::new(&store).exists(), "{arguments:?} made a folder");
    }
    let documents = folder.write("d.jsonl", "{\"id\":\"a\",\"text\":\"Dover.\"}\n");
    told(&["import", &store, "--documents", &documents]);
    let commands: [&[&str]; 4] = [
        &["show", &store, "b"],
        &["expand", &store, "b"],
        &["rm", &store, "b"],
        &["ask", &store, "q", "--space", "none"],
    ];
    for arguments in commands {
        let run = run(arguments);
        assert_eq!(run.code, 3, "{arguments:?}: {}", run.err);
    }
}

#[test]
fn wrong_usage_ends_with_two_and_missing_input_with_five() {
    let folder = Folder::new();
    let store = folder.store();
    let documents = folder.write("d.jsonl", "{\"id\":\"a\",\"text\":\"Dover.\"}\n");
    told(&["import", &store, "--documents", &documents]);
    let wrong: [&[&str]; 6] = [
        &[],
        &["unknown"],
        &["ask", &store],
        &["import", &store],
        &["ask", &store, "q", "--filter", "(kind exists"],
        &["edges", &store, "--percentile", "101"],
    ];
    for arguments in wrong {
        assert_eq!(run(arguments).code, 2, "{arguments:?}");
    }
    let missing = folder.path("missing");
    for arguments in
        [&["import", &store, "--documents", &missing][..], &["ingest", &store, &missing], &["eval", &store, &missing]]
    {
        let run = run(arguments);
        assert_eq!(run.code, 5, "{arguments:?}: {}", run.err);
        assert!(run.err.contains("missing"), "{}", run.err);
    }
}

#[test]
fn a_store_that_is_damaged_or_none_ends_with_four() {
    let folder = Folder::new();
    let store = folder.store();
    let documents = folder.write("d.jsonl", "{\"id\":\"a\",\"text\":\"Dover.\"}\n");
    let file = folder.write("file", "not a store");
    for arguments in [&["stats", &file][..], &["import", &file, "--documents", &documents]] {
        let run = run(arguments);
        assert_eq!(run.code, 4, "{arguments:?}: {}", run.err);
    }
    told(&["import", &store, "--documents", &documents]);
    let segments = Path::new(&store).join("segments");
    for entry in fs::read_dir(segments).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let mut bytes = fs::read(&path).expect("the file can be read");
        bytes[300] ^= 1;
        fs::write(&path, bytes).expect("the file can be written");
    }
    let verified = run(&["verify", &store, "--json"]);
    assert_eq!(verified.code, 4, "{}", verified.err);
    assert!(verified.json()["problems"].as_array().is_some_and(|problems| problems.len() == 1));
    assert_eq!(run(&["ask", &store, "Dover"]).code, 4);
    fs::remove_file(Path::new(&store).join("catalog.redb")).expect("the file is there");
    assert_eq!(run(&["import", &store, "--documents", &documents]).code, 4);
}

#[cfg(unix)]
#[test]
fn without_permission_it_ends_with_five() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let locked = folder.path("locked");
    fs::create_dir(&locked).expect("a folder can be made");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).expect("the folder is ours");
    if fs::write(Path::new(&locked).join("try"), b"").is_ok() {
        println!("skipped: permissions do not hold for this user, who may write everywhere");
        return;
    }
    let documents = folder.write("d.jsonl", "{\"id\":\"a\",\"text\":\"Dover.\"}\n");
    let refused = run(&["import", &format!("{locked}/store"), "--documents", &documents]);
    assert_eq!(refused.code, 5, "{}", refused.err);
    assert!(refused.err.contains("ermission"), "{}", refused.err);
}

#[test]
fn every_command_has_a_help_with_an_example() {
    let commands = "demo ingest import edges ask compare expand components pagerank path neighbours hubs select graph \
                    show ls eval rm stats verify compact backup restore repair salvage durability";
    for command in commands.split_whitespace() {
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, 0);
        let example = help.out.lines().find(|line| line.trim().starts_with(&format!("hedgerow {command}")));
        assert!(example.is_some(), "{command}: {}", help.out);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let folder = Folder::new();
    let lines = lines_of(2000);
    let documents = folder.write("d.jsonl", lines);
    let store = place.path().to_str().expect("the path is text").to_owned();
    told(&["import", &store, "--documents", &documents, "--embedder", "none"]);
    let mut child = command()
        .args(["ls", &store, "--limit", "2000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
