//! Retrieval by terms alone in many languages: the first article of the Universal Declaration of Human Rights, and short passages.

use crate::stores::Place;
use hedgerow::{Batch, Document, Pipeline, Quiet, Snapshot};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A store of these texts, with numbers for keys and titles, that has nothing but terms.
fn built(place: &Place, texts: &[&str]) -> Snapshot {
    let store = place.open();
    let document =
        |(number, text): (usize, &&str)| Document::new(number.to_string()).title(number.to_string()).text(*text);
    let documents = texts.iter().enumerate().map(document).collect();
    let mut batch = Batch::default();
    let staged = Pipeline::default().stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
    assert_eq!(staged.rejected, []);
    store.commit(batch).expect("the batch is sound");
    place.read()
}

/// Whether a question finds one text before all others.
fn finds(snapshot: &Snapshot, question: &str, number: usize) -> bool {
    let found = snapshot.search_terms(question, None, 2).expect("the question has an answer");
    let is_alone = found.get(1).is_none_or(|second| second.score < found[0].score);
    is_alone && found.first().is_some_and(|first| first.key == format!("{number}#0"))
}

/// The first half of a text, and a few words, or as many letters as those have, out of its middle.
fn questions(text: &str) -> [String; 2] {
    // Amharic puts a sign between words.
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter == '፡').collect();
    let middle = words.len() / 2;
    if middle >= 4 {
        return [words[..middle].join(" "), words[middle - 2..middle + 2].join(" ")];
    }
    let letters: Vec<char> = text.chars().collect();
    let middle = letters.len() / 2;
    [letters[..middle].iter().collect(), letters[middle - 5..middle + 5].iter().collect()]
}

#[test]
fn an_article_is_found_by_its_first_half_and_by_words_out_of_its_middle_in_every_language() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/udhr/articles.jsonl");
    let lines = fs::read_to_string(path).expect("the set is part of the project");
    let articles: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    let [languages, texts] = ["language", "text"].map(|field| -> Vec<&str> {
        articles.iter().map(|article| article[field].as_str().expect("the field is text")).collect()
    });
    let place = Place::new();
    let snapshot = built(&place, &texts);
    let mut missed = Vec::new();
    for (number, (language, text)) in languages.iter().zip(&texts).enumerate() {
        missed.extend(
            questions(text)
                .into_iter()
                .filter(|question| !finds(&snapshot, question, number))
                .map(|question| format!("{language}: {question}")),
        );
    }
    assert!(articles.len() == 60 && missed.is_empty(), "{missed:#?}");
}

/// Every question must find the passage at its place.
fn check(passages: &[&str], questions: &[&str]) {
    let place = Place::new();
    let snapshot = built(&place, passages);
    let missed: Vec<&&str> = questions
        .iter()
        .enumerate()
        .filter(|(number, question)| !finds(&snapshot, question, *number))
        .map(|(_, question)| question)
        .collect();
    assert!(passages.len() == questions.len() && missed.is_empty(), "{missed:?}");
}

#[test]
fn two_words_find_the_passage_in_scripts_without_spaces() {
    check(
        &[
            "北京地铁的首班车在早上五点发车，末班车在晚上十一点。",
            "上海博物馆周一闭馆，学生可以免费参观青铜器展厅。",
            "这家工厂生产电动汽车的电池，每年出口到欧洲。",
        ],
        &["地铁 末班车", "学生 青铜器", "电池 出口"],
    );
    check(
        &[
            "東京駅の新幹線は朝六時に出発し、京都まで二時間半かかります。",
            "この図書館では本を二週間借りることができます。延長は一回だけです。",
            "カレーライスの作り方：玉ねぎを炒めて、水を加えて煮込みます。",
        ],
        &["新幹線 出発", "図書館 延長", "玉ねぎ カレー"],
    );
    check(
        &[
            "รถไฟฟ้าขบวนแรกออกจากสถานีเวลาหกโมงเช้า",
            "ห้องสมุดปิดทุกวันจันทร์และให้ยืมหนังสือได้สองสัปดาห์",
            "โรงงานแห่งนี้ผลิตแบตเตอรี่สำหรับรถยนต์และส่งออกไปยุโรป",
        ],
        &["รถไฟฟ้า สถานี", "ห้องสมุด หนังสือ", "แบตเตอรี่ ส่งออก"],
    );
    check(
        &[
            "서울역에서 부산으로 가는 기차는 아침 여섯 시에 출발한다.",
            "도서관은 월요일에 문을 닫으며 책을 두 주 동안 빌릴 수 있다.",
            "이 공장은 전기 자동차의 배터리를 만들어 유럽에 수출한다.",
        ],
        &["기차 출발", "도서관 월요일", "배터리 수출"],
    );
}

#[test]
fn a_word_finds_its_other_forms_in_the_language_of_the_passage() {
    check(
        &[
            "Die Häuser der Stadt sind alt und werden von dem Amt mit Geld erhalten.",
            "Les bibliothèques de la ville sont ouvertes et il est permis de lire dans le jardin.",
            "Las organizaciones de los trabajadores se reúnen en la plaza para que se oiga su voz.",
            "Книги для детей стоят на полке в библиотеке, и они не продаются.",
            "Οι άνθρωποι της πόλης πηγαίνουν στη θάλασσα.",
            "De boeken van het museum zijn oud en worden niet aan de lezers uitgeleend.",
            "Le navi che arrivano nel porto non sono della compagnia e portano il grano.",
            "Os navios que chegam ao porto não são da companhia e trazem o trigo para uma fábrica.",
            "Talojen katot on maalattu punaisiksi, ja se on kaunista, mutta ei niin kuin ennen.",
            "The runners were waiting for the ferries of the island.",
        ],
        &[
            "Haus einer Stadt",
            "bibliothèque ouverte",
            "organización del trabajador",
            "книга ребёнку, детям",
            "ο άνθρωπος",
            "boek lezer",
            "la nave, i porti",
            "o navio, as fábricas",
            "talo punainen katto",
            "runner ferry",
        ],
    );
}
