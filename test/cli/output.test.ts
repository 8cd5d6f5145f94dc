// Rendering of tables and progress.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createProgress } from '../../src/cli/terminal/progress.js';
import { renderFitting, renderTable } from '../../src/cli/terminal/table.js';
import { cutToWidth, textWidth } from '../../src/cli/terminal/text-width.js';
import { formatCount, formatSeconds } from '../../src/cli/terminal/units.js';
import { printable } from '../../src/common/printable.js';

it('columns are as wide as their content, numbers to the right', () => {
  const columns = [{ title: 'id' }, { title: 'score', align: 'right' }] as const;
  const rows = [
    ['dolphin', '1'],
    ['cat', '0.25'],
  ];
  assert.equal(renderTable(columns, rows, 80), 'id       score\ndolphin      1\ncat       0.25');
});

it('the widest column shrinks until the table fits', () => {
  const columns = [{ title: 'id' }, { title: 'gloss' }];
  const lines = renderTable(columns, [['n02069974', 'x'.repeat(200)]], 40).split('\n');
  assert.equal(lines[1], `n02069974  ${'x'.repeat(28)}…`);
  for (const line of lines) assert.ok(line.length <= 40);
});

it('ids are never cut', () => {
  const columns = [{ title: 'id', isWhole: true }, { title: 'gloss' }];
  const id = 'i'.repeat(50);
  const [, line] = renderTable(columns, [[id, 'x'.repeat(40)]], 60).split('\n');
  assert.equal(line, `${id}  ${'x'.repeat(7)}…`);
});

it('a column keeps a minimum width on a narrow terminal', () => {
  const columns = ['a', 'b', 'c'].map((title) => ({ title }));
  const [, line] = renderTable(
    columns,
    [['x'.repeat(20), 'y'.repeat(20), 'z'.repeat(20)]],
    5,
  ).split('\n');
  assert.equal(line, 'xxxxxxx…  yyyyyyy…  zzzzzzz…');
});

it('a table that is too wide for a terminal is a list per row, of which no line is wider', () => {
  const columns = [
    { title: 'time', isWhole: true },
    ...['operation', 'target', 'principal', 'client'].map((title) => ({ title })),
  ];
  const rows = [
    ['2026-11-24T05:00:00Z', 'collection.delete', 'articles', 'key:3kTMd9xQ7bZr2LfW', '127.0.0.1'],
    ['2026-11-24T05:00:01Z', 'key.create', '', 'anonymous', '日本語'.repeat(20)],
  ];
  for (const width of [60, 80, 100]) {
    const text = renderFitting(columns, rows, width);
    assert.equal(text, renderTable(columns, rows, width));
    for (const line of text.split('\n')) assert.ok(textWidth(line) <= width, line);
  }
  assert.equal(
    renderFitting(columns, rows, 40),
    'time       2026-11-24T05:00:00Z\noperation  collection.delete\ntarget     articles\n' +
      'principal  key:3kTMd9xQ7bZr2LfW\nclient     127.0.0.1\n\n' +
      'time       2026-11-24T05:00:01Z\noperation  key.create\nprincipal  anonymous\n' +
      `client     ${'日本語'.repeat(20).slice(0, 14)}…`,
  );
});

it('wide characters take two columns, combining ones none', () => {
  for (const [text, width] of [
    ['abc', 3],
    ['日本語', 6],
    ['한국어', 6],
    ['ｶﾅ', 2],
    ['カナー', 6],
    ['ＡＢ', 4],
    ['🐬', 2],
    ['👨‍👩‍👧', 2],
    ['🇩🇪', 2],
    ['❤️', 2],
    ['é', 1],
    ['e\u0301', 1],
    ['\u200b', 0],
    ['für «x»…', 8],
    ['Привет ∀', 8],
  ] as const) {
    assert.equal(textWidth(text), width, text);
  }
  assert.equal(cutToWidth('日本語', 6), '日本語');
  assert.equal(cutToWidth('日本語', 5), '日本…');
  assert.equal(cutToWidth('日本語', 4), '日…');
  assert.equal(cutToWidth('ae\u0301i', 2), 'a…');
  const columns = [{ title: 'a' }, { title: 'b' }];
  const rows = [
    ['日本', 'x'],
    ['abc', 'y'],
  ];
  assert.equal(renderTable(columns, rows, 80), 'a     b\n日本  x\nabc   y');
});

it('control characters in metadata are replaced', () => {
  assert.equal(printable('a\x1b[2Jb\r\nc\u202ed\u009b'), 'a·[2Jb··c·d·');
  assert.equal(printable('🐬 für «x»'), '🐬 für «x»');
  assert.equal(renderTable([{ title: 'a\n' }], [['b\x1b[2J']], 80), 'a·\nb·[2J');
});

function record(isTTY: boolean, columns?: number) {
  const texts: string[] = [];
  let now = 0;
  const progress = createProgress(
    'docs:',
    { rowCount: 0 },
    { isTTY, ...(columns && { columns }), write: (text: string) => texts.push(text) },
    () => now,
  );
  return { progress, texts, wait: (ms: number) => (now += ms) };
}

it('a terminal shows one bar with rate and time left, updated at most ten times a second', () => {
  const { progress, texts, wait } = record(true);
  for (let step = 1; step <= 4_000; step++) {
    wait(1);
    progress.update(step * 10, step / 8_000);
  }
  assert.ok(texts.length <= 40, `${texts.length} updates`);
  assert.match(
    texts.at(-1)!,
    /^\rdocs: █{12}░{12} {2}50 % {2}40,000 rows {2}10,000 rows\/s {2}4.0 s left/,
  );
  progress.end();
  assert.equal(texts.at(-1), '\n');
});

it('other outputs get a line every few seconds and one at the end', () => {
  const { progress, texts, wait } = record(false);
  for (let step = 1; step <= 120; step++) {
    wait(100);
    progress.update(step, undefined);
  }
  progress.end();
  assert.deepEqual(texts, [
    'docs: 50 rows  10 rows/s\n',
    'docs: 100 rows  10 rows/s\n',
    'docs: 120 rows  10 rows/s\n',
  ]);
});

it('the bar never wraps, and a finished job shows 100 %', () => {
  const { progress, texts, wait } = record(true, 40);
  wait(1_000);
  progress.update(1, 0.56);
  assert.equal(texts.at(-1), `\rdocs: ${'█'.repeat(13)}${'░'.repeat(11)}  56 %  …\x1b[K`);
  progress.end(true);
  assert.match(texts.at(-2)!, /█{24} {2}100 %/);
  assert.deepEqual(texts.at(-1), '\n');
});

it('a single row is in the singular', () => {
  const { progress, texts, wait } = record(false);
  wait(1_000);
  progress.update(1, undefined);
  progress.end();
  assert.deepEqual(texts, ['docs: 1 row  1 row/s\n']);
});

it('nothing is printed without an update', () => {
  const { progress, texts } = record(true);
  progress.end();
  assert.deepEqual(texts, []);
});

it('formats counts and durations', () => {
  assert.equal(formatCount(1_234_567), '1,234,567');
  assert.deepEqual([0.25, 12.3, 200, 10_000].map(formatSeconds), [
    '0.3 s',
    '12 s',
    '3 min',
    '2.8 h',
  ]);
});
