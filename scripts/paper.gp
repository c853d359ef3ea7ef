# The paper's figure from two results folders:  gnuplot -e "results='results'; kind='svg'" scripts/paper.gp
# Left: over rounds and delta, one malicious agent. Right: over rounds and the share of malicious agents, delta = 1000.
# Rows: mean, median, REF, VREF, oracle, one colour scale; below them the steady state with the theory line.
if (!exists("kind")) kind = 'svg'
if (!exists("results")) results = 'results'
if (kind eq 'svg') set terminal svg size 1000,1500 font 'Helvetica,13' background 'white'
if (kind eq 'png') set terminal pngcairo size 1500,2250 font 'Helvetica,13' fontscale 1.4 linewidth 1.4
if (kind eq 'pdf') set terminal pdfcairo size 22cm,33cm font 'Helvetica,9'
set output results.'/paper.'.kind
set termoption noenhanced
set encoding utf8
set palette defined (0 '#440154', 1 '#482878', 2 '#3e4989', 3 '#31688e', 4 '#26828e', 5 '#1f9e89', 6 '#35b779', \
                     7 '#6ece58', 8 '#b5de2b', 9 '#fde725')
# As in every other figure: src/experiment/present/figure_style.c
set linetype 1 lc rgb '#7f7f7f' pt 2
set linetype 2 lc rgb '#e69f00' pt 7
set linetype 3 lc rgb '#0072b2' pt 5
set linetype 4 lc rgb '#9467bd' pt 13
names = "mean median REF VREF oracle"
rows = 6
gap = 0.045
height = (0.95 - rows*gap)/rows
top(row) = 0.965 - (row - 1)*(height + gap)

heat_delta = results.'/paper_delta/figures/heat.dat'
heat_rate = results.'/paper_rate/figures/heat.dat'
final_delta = results.'/paper_delta/figures/final.dat'
final_rate = results.'/paper_rate/figures/final.dat'
# Edges of the images as reef run has laid them out: see low, step, zero and half in heat.gp.
eval system("sed -n 's/^\\(low\\|step\\|zero\\|half\\) = \\(.*\\)/delta_\\1 = \\2;/p' ".results."/paper_delta/figures/heat.gp | tr -d '\\n'")
eval system("sed -n 's/^\\(low\\|step\\|zero\\|half\\) = \\(.*\\)/rate_\\1 = \\2;/p' ".results."/paper_rate/figures/heat.gp | tr -d '\\n'")
agents = 32.0

set multiplot
set cbrange [-52:20]
set tics out nomirror
set xrange [0:4000]
set xtics 1000
unset colorbox
do for [row = 1:5] {
    name = word(names, row)
    set tmargin at screen top(row)
    set bmargin at screen top(row) - height
    if (row == 5) { set xlabel 'round' offset 0,0.5 } else { unset xlabel }

    set lmargin at screen 0.115
    set rmargin at screen 0.43
    set title name.', one malicious agent' offset 0,-0.7
    set ylabel 'delta' offset -0.5,0
    set yrange [delta_zero - 1.2*delta_half:delta_low + 120*delta_step]
    set ytics ('0' delta_zero, '0.0001' -4, '0.001' -3, '0.01' -2, '0.1' -1, '1' 0, '10' 1, '100' 2, '1000' 3)
    plot heat_delta index 2*(row - 1) matrix using ($1*20):(delta_low + ($2 + 0.5)*delta_step):3 with image notitle, \
         '' index 2*(row - 1) + 1 matrix using ($1*20):(delta_zero + ($2 - 0.5)*delta_half):3 with image notitle

    set lmargin at screen 0.53
    set rmargin at screen 0.87
    set title name.', delta = 1000' offset 0,-0.7
    set ylabel 'contamination rate'
    set yrange [rate_low/agents:(rate_low + 120*rate_step)/agents]
    set ytics ('0' 0, '1/8' 0.125, '1/4' 0.25, '3/8' 0.375, '1/2' 0.5)
    if (row == 1) {
        set colorbox user origin 0.9,(top(5) - height) size 0.02,(top(1) - top(5) + height)
        set cblabel 'MSD [dB]; brightest: +20 dB and above' offset 1.2
    } else { unset colorbox }
    plot heat_rate index (row - 1) matrix using ($1*20):((rate_low + ($2 + 0.5)*rate_step)/agents):3 with image notitle
    unset colorbox
}

set tmargin at screen top(6) - 0.01
set bmargin at screen top(6) - height
set grid lc rgb '#bbbbbb' lw 0.5
set yrange [-52:20]
set ytics 20
set ylabel 'steady state [dB]'
set lmargin at screen 0.115
set rmargin at screen 0.43
unset title
unset key
set xlabel 'delta' offset 0,0.5
set xrange [delta_zero - 2*delta_half:3.2]
set xtics ('0' delta_zero, '0.001' -3, '0.1' -1, '10' 1, '1000' 3)
plot final_delta index 4 using 1:3 with lines lw 7 lc rgb '#b5b5b5' title 'oracle', \
     for [i = 1:4] final_delta index i - 1 using 1:2:3:4 with yerrorlines lw 2 ps 0.5 lt i title word(names, i), \
     for [i = 1:4] final_delta index i - 1 using 1:5 with points pt 9 ps 1.3 lc i notitle, \
     final_delta index 4 using 1:2 with lines dt 3 lw 2 lc 'black' title 'theory'
set lmargin at screen 0.53
set rmargin at screen 0.87
set xlabel 'contamination rate'
set xrange [-0.02:0.52]
set xtics ('0' 0, '1/8' 0.125, '1/4' 0.25, '3/8' 0.375, '1/2' 0.5)
set key at screen 0.995,(top(6) - 0.01) right top samplen 1.5
plot final_rate index 4 using ($1/agents):3 with lines lw 7 lc rgb '#b5b5b5' title 'oracle', \
     for [i = 1:4] final_rate index i - 1 using ($1/agents):2:($3):($4) with yerrorlines lw 2 ps 0.5 lt i title word(names, i), \
     for [i = 1:4] final_rate index i - 1 using ($1/agents):5 with points pt 9 ps 1.3 lc i notitle, \
     final_rate index 4 using ($1/agents):2 with lines dt 3 lw 2 lc 'black' title 'theory'
unset multiplot
