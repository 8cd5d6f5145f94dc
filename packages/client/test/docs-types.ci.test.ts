// The TypeScript examples of the documentation compile with all strict checks, against the published types.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The compiled test is at dist/test/client. */
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
/** In the checkout, so that packages can be resolved. */
const FOLDER = join(ROOT, 'dist/docs-types');
const DOCUMENTS = [
  'docs/client.md',
  'README.md',
  'packages/client/README.md',
  'packages/langchain/README.md',
];
const RUN_MS_MAX = 120_000;

/** `typescript` marks an example that tests do not run; it is still part of the program. */
const EXAMPLE = /^```(?:ts|typescript)\n([\s\S]*?)^```$/gm;

const SETTINGS = {
  extends: '../../tsconfig.json',
  compilerOptions: {
    noEmit: true,
    incremental: false,
    // Examples declare names without using them.
    noUnusedLocals: false,
    noUncheckedIndexedAccess: true,
    rootDir: '../..',
  },
  include: ['*.ts'],
  exclude: [],
};

before(() => mkdir(FOLDER, { recursive: true }));
after(() => rm(FOLDER, { recursive: true }));

/** The compiler's messages about the examples, with the line numbers of the documents. */
async function compile(texts: ReadonlyMap<string, string>): Promise<string> {
  const { paths } = await compilerOptions();
  const absolute = Object.entries(paths).map(([name, [path]]) => [name, [join(ROOT, path!)]]);
  const settings = {
    ...SETTINGS,
    compilerOptions: { ...SETTINGS.compilerOptions, paths: Object.fromEntries(absolute) },
  };
  await rm(FOLDER, { recursive: true });
  await mkdir(FOLDER);
  await writeFile(join(FOLDER, 'tsconfig.json'), JSON.stringify(settings));
  for (const [name, text] of texts) await writeFile(join(FOLDER, fileOf(name)), program(text));
  const words = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', FOLDER, '--pretty', 'false'];
  return new Promise((resolve) => {
    execFile(process.execPath, words, { timeout: RUN_MS_MAX }, (error, stdout, stderr) =>
      resolve(error === null ? '' : `${stdout}${stderr}` || error.message),
    );
  });
}

async function compilerOptions(): Promise<{ readonly paths: Record<string, string[]> }> {
  return JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8')).compilerOptions;
}

const fileOf = (document: string) => `${document.replaceAll(/[/.]/g, '-')}.ts`;

/** One program of all examples, each on its lines in the document. */
function program(text: string): string {
  const lines: string[] = [];
  for (const match of text.matchAll(EXAMPLE)) {
    const first = text.slice(0, match.index).split('\n').length;
    while (lines.length < first) lines.push('');
    lines.push(...match[1]!.split('\n').slice(0, -1));
  }
  return `${lines.join('\n')}\nexport {};\n`;
}

it('the TypeScript examples compile with all strict checks', async () => {
  const texts = new Map<string, string>();
  for (const document of DOCUMENTS) {
    const text = await readFile(join(ROOT, document), 'utf8');
    assert.ok(program(text).includes('import '), `${document} has no example`);
    texts.set(document, text);
  }
  assert.equal(await compile(texts), '');
});

it('reports a mistake in an example with its line', async () => {
  const text = '# Title\n\n```ts\nconst a: number[] = [];\nconst b: number = a[0];\n```\n';
  assert.match(await compile(new Map([['a.md', text]])), /a-md\.ts\(5,7\): error TS2322/);
});
