# testapps/plots/throughput.gp: iterations a second of all workers together, by their number. data: a block for
# each curve: workers, iterations a second; `curves`: their names, separated by '|': the way, the memory,
# and 'sync' where the worker synchronises first. Colours and dashes tell the memory, points the way. Curves
# that lie upon each other are still to be seen: later ones are thinner, and not solid.
load system("dirname '".ARG0."'").'/style.gp'
set xlabel 'workers on one GPU'
set ylabel 'iterations a second, all workers'
set logscale x 2
set yrange [0:*]
set key outside right top width -3 samplen 5 spacing 1.4 font ',12'
set rmargin 32
curve(i) = system("echo '".curves."' | cut -d '|' -f ".i)
count = words(system("echo '".curves."' | tr ' |' '_ '"))
way(i) = strstrt(curve(i), 'threads') ? 1 : strstrt(curve(i), 'processes') ? 2 : 3
memory(i) = (strstrt(curve(i), 'pinned') ? 3 : 1) + (strstrt(curve(i), 'sync') ? 1 : 0)
array points[3] = [7, 5, 9]
array ways[3] = ['threads', 'processes', 'processes under MPS']
array memories[4] = ['pageable', 'pageable, synchronised first', 'pinned', 'pinned, synchronised first']
set style line 1 linetype 1 linewidth 7 dashtype 1 pointsize 2.4
set style line 2 linetype 2 linewidth 5 dashtype (6, 4) pointsize 1.8
set style line 3 linetype 3 linewidth 4 dashtype (3, 6) pointsize 1.2
set style line 4 linetype 4 linewidth 3 dashtype (8, 8) pointsize 0.7
plot for [i = 1:count] data index i - 1 using 1:2 with linespoints linestyle memory(i) \
     pointtype points[way(i)] notitle, \
     for [m = 1:4] NaN with lines linestyle m title memories[m], \
     for [w = 1:3] NaN with points pointtype points[w] pointsize 1.6 linecolor rgb '#444444' title ways[w]
