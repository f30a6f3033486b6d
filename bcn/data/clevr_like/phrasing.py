"""Sentences of clevr-like-v2: several phrasings of each form of question, in all 81 words of CLEVR's questions.

A question about an object in relation to others is asked in one sentence, "What color is the ball behind the cube?", or
in two, "There is a ball behind the cube; what color is it?".
"""

from bcn.data.clevr_like.grammar import SYNONYMS, Choose, Link, Noun, plural
from bcn.data.vqa.clevr import ATTRIBUTES

_LINES = (
    "; a an and another any anything are as ball balls behind big block blocks blue both brown color cube cubes cyan",
    "cylinder cylinders do does either else equal fewer front gray greater green has have how in is it its large left",
    "less made many material matte metal metallic more number object objects of on or other purple red right rubber",
    "same shape shiny side size small sphere spheres than that the there thing things tiny to visible what yellow",
)
WORDS = tuple(word for line in _LINES for word in line.split())
"""all of CLEVR's questions"""
_BEGINNINGS = ("there is ",) * 7 + ("",) * 10
"""how often a question that can begin with "There is a" does"""


def phrase(
    kind: str, *nouns: Noun, choose: Choose, either: bool = False, shared: tuple[tuple[str, str], ...] = ()
) -> str:
    """A question in English.

    Args:
        nouns: what is asked about.
        choose: picks one of several phrasings.
        either: whether it is asked about the union of two nouns.
        shared: attributes that this union has to have.

    >>> ball = Noun((("shape", "sphere"),))
    >>> phrase("query_color", Noun((), (Link("left", ball),)), choose=lambda ways: ways[0])
    'There is a thing that is left of the sphere; what color is it?'
    """
    return _Phrasing(choose).question(kind, nouns, either, shared) + "?"


class _Phrasing:
    def __init__(self, choose: Choose) -> None:
        self.choose = choose

    def question(self, kind: str, nouns: tuple[Noun, ...], either: bool, shared: tuple[tuple[str, str], ...]) -> str:
        verb, _, attribute = kind.partition("_")
        if either:
            text = self.count_union(nouns, shared)
        elif kind in ("count", "exist"):
            text = self.ask_of_set(kind, nouns[0])
        elif verb == "query":
            text = self.query(attribute, nouns[0])
        elif attribute in ATTRIBUTES:
            text = self.compare(attribute, *nouns)
        else:
            text = self.compare_numbers(kind, *nouns)
        return text[0].upper() + text[1:]

    # Parts of sentences

    def synonym(self, word: str) -> str:
        return self.choose(SYNONYMS.get(word, (word,)))

    def name(self, filters: tuple[tuple[str, str], ...], many: bool = False) -> str:
        """ "big red cube", without its links"""
        values = dict(filters)
        words = [self.synonym(values[name]) for name in ("size", "color", "material") if name in values]
        last = self.synonym(values.get("shape", "thing"))
        return " ".join([*words, plural(last) if many else last])

    def noun(self, noun: Noun, many: bool = False, other: str = "other") -> str:
        """ "big red cube that is left of the ball"; `other` comes before it where it shares an attribute."""
        name, verb = self.name(noun.filters, many), "are" if many else "is"
        if not noun.links:
            return name
        if len(noun.links) == 2:
            return f"{name} that {verb} {self.both(noun.links)}"
        (link,) = noun.links
        if link.name in ATTRIBUTES:
            return f"{_other(noun, other)}{name} {self.sharing(link, many)}"
        return f"{name} {self.choose((f'that {verb} ', ''))}{self.relation(link)}"

    def relation(self, link: Link) -> str:
        return f"{self.synonym(link.name)} the {self.noun(link.noun)}"

    def both(self, links: tuple[Link, ...]) -> str:
        return self.choose(("both ", "")) + " and ".join(map(self.relation, links))

    def sharing(self, link: Link, many: bool) -> str:
        """ "that has the same color as the ball" """
        ways = ["that are", "that have", "of"] if many else ["that is", "that has", "of"]
        if link.name == "material":
            ways[0] = self.choose((ways[0], f"{ways[0]} made of"))
        return f"{self.choose(ways)} the same {link.name} as the {self.noun(link.noun)}"

    # Questions

    def ask_of_set(self, kind: str, noun: Noun) -> str:
        how = self.choose(("how many", "what number of"))
        if not noun.links:
            if kind == "count":
                return f"{how} {self.name(noun.filters, True)} are {self.choose(('there', 'visible'))}"
            one, many = f"is there a {self.name(noun.filters)}", self.name(noun.filters, True)
            return self.choose((one, f"are there any {many}", f"are any {many} visible"))
        if noun.links[0].name in ATTRIBUTES:
            return self.ask_of_sharing(kind, noun, how)
        if len(noun.links) == 2:
            return f"{how} {self.name(noun.filters, True)} are {self.both(noun.links)}"
        (link,) = noun.links
        place, there = self.relation(link), ""
        if self.choose(_BEGINNINGS):
            there = f"there is a {self.noun(link.noun)}; "
            place = f"{self.synonym(link.name)} it"
        if kind == "count":
            return f"{there}{how} {self.name(noun.filters, True)} are {place}"
        that = self.choose(("that {} ", ""))
        one = f"is there a {self.name(noun.filters)} {that.format('is')}{place}"
        many = f"are there any {self.name(noun.filters, True)} {that.format('are')}{place}"
        return there + self.choose((one, many))

    def ask_of_sharing(self, kind: str, noun: Noun, how: str) -> str:
        (link,) = noun.links
        if kind == "count":
            ways = ("are", "have", "are there of", *["are made of"] * (link.name == "material"))
            same = f"{self.choose(ways)} the same {link.name} as the {self.noun(link.noun)}"
            return f"{how} {_other(noun)}{self.name(noun.filters, True)} {same}"
        if not noun.filters:
            one = self.choose(("anything else", f"any other {self.synonym('thing')}"))
            many = f"are there any other {self.synonym('thing')}s {self.sharing(link, True)}"
            return self.choose((f"is there {one} {self.sharing(link, False)}", many))
        one = f"is there {self.noun(noun, other='another') if _other(noun) else 'a ' + self.noun(noun)}"
        return self.choose((one, f"are there any {self.noun(noun, True)}"))

    def query(self, attribute: str, noun: Noun) -> str:
        its, the = f"what is its {attribute}", f"what is the {attribute} of the"
        what = {"size": "how big is", "material": "what is"}.get(attribute, f"what {attribute} is")
        end = " made of" * (attribute == "material")
        if noun.links and self.choose(_BEGINNINGS):
            ask = self.choose((f"what {attribute} is it", its, f"{what} it{end}"))
            a = self.noun(noun, other="another") if _other(noun) else "a " + self.noun(noun)
            return f"there is {a}; {ask}"
        one = self.noun(noun)
        last = "is made of what material" if end else f"{self.choose(('is', 'has'))} what {attribute}"
        return self.choose(
            (f"what {attribute} is the {one}", f"{the} {one}", f"{what} the {one}{end}", f"the {one} {last}")
        )

    def compare(self, attribute: str, first: Noun, second: Noun) -> str:
        a, b = self.noun(first), self.noun(second)
        same = self.choose(("made of ", "")) * (attribute == "material") + f"the same {attribute}"
        if (first.links or second.links) and self.choose(_BEGINNINGS):
            ask = self.choose(
                (f"is it {same} as", f"does it have the same {attribute} as", f"is its {attribute} the same as")
            )
            return f"there is a {a}; {ask} the {b}"
        return self.choose(
            (
                f"is the {a} {same} as the {b}",
                f"does the {a} have the same {attribute} as the {b}",
                f"do the {a} and the {b} have the same {attribute}",
                f"are the {a} and the {b} {same}",
                f"is the {attribute} of the {a} the same as the {b}",
            )
        )

    def compare_numbers(self, kind: str, first: Noun, second: Noun) -> str:
        a, b = self.noun(first, True), self.noun(second, True)
        if kind == "equal_integer":
            number = self.choose(("an equal number", "the same number"))
            return self.choose(
                (f"are there {number} of {a} and {b}", f"is the number of {a} the same as the number of {b}")
            )
        more, greater = ("more", "greater") if kind == "greater_than" else ("fewer", "less")
        return self.choose((f"are there {more} {a} than {b}", f"is the number of {a} {greater} than the number of {b}"))

    def count_union(self, nouns: tuple[Noun, ...], shared: tuple[tuple[str, str], ...]) -> str:
        how = self.choose(("how many", "what number of"))
        a, b = (self.noun(noun, True) for noun in nouns)
        return f"{how} {self.name(shared, True)} are {self.choose(('either ', ''))}{a} or {b}"


def _other(noun: Noun, other: str = "other") -> str:
    """ "other ", unless noun and link mention different values of an attribute, and so cannot be one object"""
    values = dict(noun.filters)
    for name, value in noun.links[0].noun.filters if noun.links[0].name in ATTRIBUTES else ():
        if values.get(name, value) != value:
            return ""
    return f"{other} " if noun.links[0].name in ATTRIBUTES else ""
