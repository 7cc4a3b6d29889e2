# testapps/plots/contention.gp: the map: calls by ways of making them at the same time. data: number of the
# column, number of the row, times one thread alone, the same as text; rows and columns are named in
# `calls` and `modes`, separated by blanks.
load system("dirname '".ARG0."'").'/style.gp'
unset key
unset grid
set border 0
set tics scale 0
set lmargin 24
set xrange [-0.5:words(modes) - 0.5]
set yrange [words(calls) - 0.5:-0.5]
set xtics ()
set ytics ()
meaning(mode) = mode eq 'one' ? 'a thread alone' : mode eq 'same' ? 'all on one GPU' : 'over all GPUs'
do for [i = 1:words(modes)] { set xtics add (word(modes, i)."\n".meaning(word(modes, i)) i - 1) }
set bmargin 6
do for [i = 1:words(calls)] { set ytics add (word(calls, i) i - 1) noenhanced }
set logscale cb
set cbrange [1:1000]
set cblabel 'times one thread alone (mean)'
set palette defined (0 '#f7fbff', 0.15 '#fee8c8', 0.5 '#fc8d59', 1 '#7f0000')
plot data using 1:2:($3 < 1 ? 1 : $3) with image, \
     data using 1:2:($3 < 60 ? strcol(4) : '') with labels font ',11' textcolor rgb '#000000', \
     data using 1:2:($3 < 60 ? '' : strcol(4)) with labels font ',11' textcolor rgb '#ffffff'
