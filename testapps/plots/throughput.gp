# testapps/plots/throughput.gp: iterations a second of all workers together, by their number. data: a block for
# each curve: workers, iterations a second; `curves`: their names, separated by '|'.
load system("dirname '".ARG0."'").'/style.gp'
set xlabel 'workers on one GPU'
set ylabel 'iterations a second, all workers'
set logscale x 2
set yrange [0:*]
set key outside right top width -1 font ',11'
curve(i) = system("echo '".curves."' | cut -d '|' -f ".i)
plot for [i = 1:words(system("echo '".curves."' | tr ' |' '_ '"))] data index i - 1 using 1:2 \
     with linespoints linetype (i - 1) % 4 + 1 dashtype 1 + (i - 1) / 4 title curve(i)
