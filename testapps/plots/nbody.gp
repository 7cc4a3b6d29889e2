# testapps/plots/nbody.gp: one GPU, one or several processes. data: name of the way, processes, thousand
# million interactions a second of each, of all.
load system("dirname '".ARG0."'").'/style.gp'
set ylabel '10^9 interactions a second'
set yrange [0:*]
set offsets 0, 0, graph 0.15, 0
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set boxwidth 0.9
set xtics noenhanced
set key top right
plot data using 3:xtic(1) title 'each process' linetype 1, \
     data using 4 title 'all together' linetype 6
