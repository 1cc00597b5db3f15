"""The project's own words for things that the field has a name for do not come back."""

from tests.architecture.structure.glossary import GLOSSARY, occurrences, words_in


def test_no_word_of_the_glossary_stands_in_an_identifier_message_or_page() -> None:
    offenders = [
        f"{place.file}:{place.line}: {place.word} -> {GLOSSARY[place.word]}: {place.text}"
        for place in occurrences()
    ]
    assert offenders == []


def test_identifiers_and_wrapped_lines_are_read_as_words() -> None:
    assert (
        words_in("class RollCall:\n    # put\n    # off\n    roll_call")
        == "class roll call: put off roll call"
    )
