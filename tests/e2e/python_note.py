# tests/e2e/python_note.py: where a frame of Python is, by the interpreter's own idea of its frames, as cudaspy has
# to tell it: "more=0 line:function:file,..." innermost first; more=2: those between the first 12 and the last 12 are left out, of the
# 256 that are looked at. For python_lines.py and tests/gpu/torch_lines.py.
MOST, INNERMOST, LOOKED = 24, 12, 256
names = hasattr((lambda: 0).__code__, "co_qualname")


def note(frame):
    frames = []
    while frame:
        code = frame.f_code
        name = code.co_qualname if names else code.co_name
        frames.append("%d:%s:%s" % (frame.f_lineno, name, code.co_filename))
        frame = frame.f_back
    more = len(frames) > MOST
    if more:
        frames = frames[:INNERMOST] + frames[:LOOKED][INNERMOST - MOST:]
    print("more=%d %s" % (2 * more, ",".join(frames)), flush=True)
