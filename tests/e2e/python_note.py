# tests/e2e/python_note.py: where a frame of Python is, by the interpreter's own idea of its frames, as cudaspy has
# to tell it: "more=0 line:function:file,..." innermost first. For python_lines.py and tests/gpu/torch_lines.py.
MOST = 24
names = hasattr((lambda: 0).__code__, "co_qualname")


def note(frame):
    frames = []
    while frame:
        code = frame.f_code
        name = code.co_qualname if names else code.co_name
        frames.append("%d:%s:%s" % (frame.f_lineno, name, code.co_filename))
        frame = frame.f_back
    print("more=%d %s" % (len(frames) > MOST, ",".join(frames[:MOST])), flush=True)
