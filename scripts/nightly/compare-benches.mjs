// Compares bench results with the newest ones in bench/results, number by number. It matches rows by their first cell
// and columns by their heading, and prints the numbers that changed by more than a fifth. It never fails, since
// machines differ.
//
//   node scripts/nightly/compare-benches.mjs DIRECTORY    with the files of `npm run bench -- --full --out DIRECTORY`

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const RATIO_SHOWN = 1.2;
const RESULTS = join('bench', 'results');

const [folder] = process.argv.slice(2);
const known = readdirSync(RESULTS)
  .filter((name) => name.endsWith('.md'))
  .sort();
for (const file of readdirSync(folder)
  .filter((name) => name.endsWith('.md'))
  .sort()) {
  const name = basename(file, '.md');
  const newest = known.filter((path) => path.slice('2026-01-01-'.length) === file).at(-1);
  if (newest === undefined) {
    console.log(`${name}: no earlier results to compare with`);
    continue;
  }
  const before = figuresIn(join(RESULTS, newest));
  const after = figuresIn(join(folder, file));
  const shared = [...after].filter(([place]) => before.has(place));
  const changed = shared.filter(([place, value]) => isChanged(value / before.get(place)));
  console.log(
    `${name}: ${changed.length} of ${shared.length} figures in ${newest} changed by more than a fifth`,
  );
  for (const [place, value] of changed) console.log(`  ${place}: ${before.get(place)} → ${value}`);
}

function isChanged(ratio) {
  return Number.isFinite(ratio) && (ratio > RATIO_SHOWN || ratio < 1 / RATIO_SHOWN);
}

/** The first number in each cell, by row and column. If tables share a row and column, the last one counts. */
function figuresIn(path) {
  const figures = new Map();
  let head = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const cells = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (cells.length === 0) {
      head = [];
    } else if (head.length === 0) {
      head = cells;
    } else {
      for (const [i, cell] of cells.entries()) {
        // Spaces separate thousands.
        const number = /-?\d[\d ]*(?:\.\d+)?/.exec(cell)?.[0].replaceAll(' ', '');
        if (i > 0 && number !== undefined) figures.set(`${cells[0]}, ${head[i]}`, Number(number));
      }
    }
  }
  return figures;
}
