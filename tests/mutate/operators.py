# tests/mutate/operators.py: small faults for C. Reads a file's tokens, finds the bodies of its functions, and
# lists what could be changed there: `sites(path, text)`. Comments, preprocessor lines, strings, asserts,
# static tables and declarations stay as they are.
import re
from collections import namedtuple

# One fault: text[begin:end] becomes `new`; `line` is that of `begin`, from 1.
Site = namedtuple("Site", "path operator line begin end new")

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[uUlLfF]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)""",
    re.X | re.S,
)
Token = namedtuple("Token", "kind text begin end")

TYPES = set(
    "void char short int long float double signed unsigned bool struct union enum static const extern register "
    "volatile inline typedef size_t ssize_t off_t pid_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t "
    "int64_t uintptr_t intptr_t FILE __thread _Atomic __attribute__".split()
)
WORDS = TYPES | set("if else for while do switch case default return break continue goto sizeof".split())
FLIP = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
EDGE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SWAP = {"+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
SCALE = {"*": "/", "/": "*", "<<": ">>", ">>": "<<", "%": "*", "*=": "/=", "/=": "*="}
BITS = {"&": "|", "|": "&", "&=": "|=", "|=": "&="}
UNITS = {1000: 1, 1000000: 1000, 1000000000: 1000000, 1024: 1, 10000: 10, 100: 10}
# Dropped updates are what gets lost in practice, so they come more often.
WEIGHTS = {"drop": 4, "flip": 2, "edge": 1, "logic": 1, "term": 2, "negate": 2, "not": 1, "swap": 1, "scale": 1,
           "bits": 1, "off-by-one": 1, "times-ten": 1, "unit": 1, "zero": 1, "return": 1, "early": 1, "stay": 1}
# What the operand before a sign ends at, seen from there.
STOPS = set("&& || ( [ { ; , ? : = += -= *= /= |= &= return".split())
# Memory that is not given back changes nothing that a test could see, nor does an order of memory on x86.
FREES = re.compile(r"(\w+_)?(free|release)")
ORDER = "__ATOMIC_"


def tokens_of(text):
    # Preprocessor lines, with what they continue on, are blanked: positions stay.
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M)
    return [Token(m.lastgroup, m[0], m.start(), m.end()) for m in TOKEN.finditer(text) if m.lastgroup != "skip"]


def closing(tokens, at, pair="()"):
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text == pair[0]) - (tokens[i].text == pair[1])
        if depth == 0:
            return i
    return len(tokens) - 1


def bodies(tokens):
    """(first, last, returns nothing) of each function's braces."""
    i, begin = 0, 0
    while i < len(tokens):
        word = tokens[i].text
        if word == "{":
            last = closing(tokens, i, "{}")
            if i and tokens[i - 1].text == ")":
                head = [t.text for t in tokens[begin:i]]
                head = head[: head.index("(")] if "(" in head else head
                yield i, last, "void" in head and "*" not in head
                begin = last + 1
            i = last
        elif word == ";":
            begin = i + 1
        i += 1


def statements(tokens, first, last):
    """(first, last) of the statements that end in a semicolon."""
    i = begin = first + 1
    while i < last:
        word = tokens[i].text
        if word in ("{", "}") and i == begin or word in ("else", "do"):
            begin = i + 1
        elif word in ("if", "while", "for", "switch") and i == begin:
            i = closing(tokens, i + 1)
            begin = i + 1
        elif word == ":" and tokens[begin].text in ("case", "default") or word == ":" and i == begin + 1:
            begin = i + 1
        elif word == "(":
            i = closing(tokens, i)
        elif word == "{":  # of an initializer
            i = closing(tokens, i, "{}")
        elif word == ";":
            if i > begin:
                yield begin, i
            begin = i + 1
        i += 1


def is_declaration(tokens, first, last):
    a = tokens[first]
    b = tokens[first + 1] if first < last else a
    if a.text in TYPES:
        return True
    c = tokens[first + 2] if first + 1 < last else b
    return a.kind == "name" and a.text not in WORDS and (b.kind == "name" or b.text == "*" and c.kind == "name")


class Finder:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.tokens = tokens_of(text)
        self.sites = []
        self.untouched = set()

    def add(self, operator, begin, end, new):
        new += "\n" * (self.text.count("\n", begin, end) - new.count("\n"))
        line = self.text.count("\n", 0, begin) + 1
        self.sites.append(Site(self.path, operator, line, begin, end, new))

    def word(self, i):
        return self.tokens[i].text

    def is_value(self, i):
        """Does a value end at token i, so that a sign behind it has two sides?"""
        token = self.tokens[i]
        return token.kind in ("number", "string") or token.text in (")", "]") or (
            token.kind == "name" and token.text not in WORDS)

    def whole_statements(self, first, last, void):
        for a, b in statements(self.tokens, first, last):
            head = self.word(a)
            begin, end = self.tokens[a].begin, self.tokens[b].end
            if head in ("assert", "static_assert", "_Static_assert"):
                self.untouched.update(range(a, b))
            elif head in ("break", "continue"):
                self.add("stay", begin, end, ";")
            elif head == "return":
                if b > a + 1 and self.word(a + 1) not in ("0", "NULL", "false") or b > a + 2:
                    self.add("return", begin, end, "return 0;")
                elif b == a + 2 and self.word(a + 1) in ("0", "false"):
                    self.add("return", begin, end, "return 1;")
            elif is_declaration(self.tokens, a, b):
                if head in ("static", "extern"):
                    self.untouched.update(range(a, b))
                else:  # only what it begins with
                    at = next((i for i in range(a, b) if self.word(i) == "="), b)
                    self.untouched.update(range(a, at))
            elif head not in ("goto", "{", "}") and not (FREES.fullmatch(head) and self.word(a + 1) == "("):
                self.add("drop", begin, end, ";")
                self.add("early", begin, begin, "return; " if void else "return 0; ")

    def operand_end(self, i):
        """The last token of the operand that begins at i."""
        depth = 0
        while i < len(self.tokens):
            word = self.word(i)
            if depth == 0 and (word in ("&&", "||", ")", "]", "}", ";", ",", "?", ":")):
                return i - 1
            depth += (word in "([{") - (word in ")]}")
            i += 1
        return i - 1

    def condition(self, i):
        """An `if` or `while` at token i."""
        if self.word(i + 1) != "(":
            return
        end = closing(self.tokens, i + 1)
        begin, stop = self.tokens[i + 1].end, self.tokens[end].begin
        if stop > begin:
            self.add("negate", begin, stop, "!(%s)" % self.text[begin:stop])

    def number(self, i):
        token = self.tokens[i]
        match = re.fullmatch(r"(\d+)([uUlL]*)", token.text)
        if not match:
            return
        value, suffix = int(match[1]), match[2]
        self.add("off-by-one", token.begin, token.end, "%d%s" % (value - 1 if value == 1 else value + 1, suffix))
        if value > 1:
            self.add("times-ten", token.begin, token.end, "%d%s" % (value * 10, suffix))
        if value in UNITS:
            self.add("unit", token.begin, token.end, "%d%s" % (UNITS[value], suffix))

    def variable(self, i):
        before, after = self.word(i - 1), self.word(i + 1)
        if before in ("(", ",", "=", "+", "-", "<", ">", "==", "!=", "<=", ">=", "&&", "||", "return", "?", ":") and \
           after in (")", ",", ";", "+", "-", "<", ">", "==", "!=", "<=", ">=", "&&", "||", "?", ":") and \
           not (before == "(" and after == ")" and self.is_value(i + 2)) and \
           self.word(i) not in ("NULL", "true", "false") and not self.word(i).startswith(ORDER):
            self.add("zero", self.tokens[i].begin, self.tokens[i].end, "0")

    def bare(self, first, last):
        """The text of tokens without casts."""
        words = [self.word(k) for k in range(first, last + 1)]
        return re.sub(r"\( (?:(?:%s|\*) )+\) " % "|".join(TYPES), "", " ".join(words) + " ")

    def chooses(self, i):
        """Is the sign at i that of `a < b ? a : b`? Where both are the same, either will do."""
        first, depth = i - 1, 0
        while depth or self.word(first) not in STOPS:
            depth += (self.word(first) in (")", "]", "}")) - (self.word(first) in ("(", "[", "{"))
            first -= 1
        question = self.operand_end(i + 1) + 1
        colon = self.operand_end(question + 1) + 1
        if self.word(question) != "?" or self.word(colon) != ":":
            return False
        compared = {self.bare(first + 1, i - 1), self.bare(i + 1, question - 1)}
        return compared == {self.bare(question + 1, colon - 1), self.bare(colon + 1, self.operand_end(colon + 1))}

    def sign(self, i):
        token, word = self.tokens[i], self.tokens[i].text
        two_sides = self.is_value(i - 1)
        if word in FLIP:
            self.add("flip", token.begin, token.end, FLIP[word])
        if word in EDGE and not self.chooses(i):
            self.add("edge", token.begin, token.end, EDGE[word])
        if word in ("&&", "||"):
            self.add("logic", token.begin, token.end, "||" if word == "&&" else "&&")
            end = self.tokens[self.operand_end(i + 1)].end
            self.add("term", token.begin, end, "")
            begin = i - 1  # and the operand before it
            depth = 0
            while depth or self.word(begin) not in ("&&", "||", "(", "[", "{", ";", ",", "?", ":", "=", "return"):
                depth += (self.word(begin) in (")", "]", "}")) - (self.word(begin) in ("(", "[", "{"))
                begin -= 1
            self.add("term", self.tokens[begin + 1].begin, token.end, "")
        if word == "!":
            self.add("not", token.begin, token.end, "")
        if word in SWAP and (two_sides or word in ("++", "--")):
            self.add("swap", token.begin, token.end, SWAP[word])
        if word in SCALE and two_sides:
            self.add("scale", token.begin, token.end, SCALE[word])
        if word in BITS and two_sides:
            self.add("bits", token.begin, token.end, BITS[word])

    def find(self):
        for first, last, void in bodies(self.tokens):
            self.whole_statements(first, last, void)
            for i in range(first + 1, last):
                token = self.tokens[i]
                if i in self.untouched:
                    continue
                if token.text in ("if", "while"):
                    self.condition(i)
                elif token.kind == "number":
                    self.number(i)
                elif token.kind == "name" and token.text not in WORDS:
                    self.variable(i)
                elif token.kind == "sign":
                    self.sign(i)
        return self.sites


def sites(path, text):
    return Finder(path, text).find()


def apply(text, site):
    return text[: site.begin] + site.new + text[site.end :]


def functions(text):
    """(first line, last line) of each function's body."""
    tokens = tokens_of(text)
    for first, last, _ in bodies(tokens):
        yield text.count("\n", 0, tokens[first].begin) + 1, text.count("\n", 0, tokens[last].begin) + 1
