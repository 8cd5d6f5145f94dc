// Compares results of benches with the newest ones in bench/results, number by number: rows are matched by their first
// cell, columns by their head. It prints what has changed by more than a fifth, and fails at nothing: machines differ.
//
//   node scripts/nightly/compare-benches.mjs DIRECTORY    with NAME.md as `npm run bench -- --full --out DIRECTORY` writes

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
    console.log(`${name}: no results to compare with`);
    continue;
  }
  const before = figuresIn(join(RESULTS, newest));
  const after = figuresIn(join(folder, file));
  const shared = [...after].filter(([place]) => before.has(place));
  const changed = shared.filter(([place, value]) => isChanged(value / before.get(place)));
  console.log(
    `${name}: ${shared.length} figures of ${newest}, ${changed.length} of them changed by a fifth`,
  );
  for (const [place, value] of changed) console.log(`  ${place}: ${before.get(place)} → ${value}`);
}

function isChanged(ratio) {
  return Number.isFinite(ratio) && (ratio > RATIO_SHOWN || ratio < 1 / RATIO_SHOWN);
}

/** The first number of each cell, by row and column; of several tables with the same place, the last. */
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
        // Thousands are set apart by spaces.
        const number = /-?\d[\d ]*(?:\.\d+)?/.exec(cell)?.[0].replaceAll(' ', '');
        if (i > 0 && number !== undefined) figures.set(`${cells[0]}, ${head[i]}`, Number(number));
      }
    }
  }
  return figures;
}
