// The client packages, installed into new projects: what is installed, whether TypeScript finds their types under each
// module resolution, and a round trip to a server in each supported environment.

import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { launchBrowser, NO_BROWSER } from '../support/browser.js';
import { startPageSite } from '../support/page-site.js';
import { startTestServer, type TestServer } from '../support/server-in-process.js';
import { NO_REGISTRY, openWorkshop, ROOT, run, type Workshop } from './packed.js';

/** Limit on the client's bytes in a page, after gzip. */
const BUNDLE_BYTES_MAX = 20_000;

/** Writes, queries and reads in its own collection, with features that only some environments have. */
const ROUND_TRIP = `import { createClient, SagittaClientError } from '@sagitta/client';
export async function roundTrip(baseUrl, id) {
  const client = createClient({ baseUrl });
  await client.collections.create({ id, dimension: 2, metric: 'dot' });
  const vectors = client.collection(id);
  function* rows() {
    for (let n = 0; n < 2_000; n++) yield { id: 'n' + n, values: new Float32Array([n, 1]) };
  }
  const { inserted_count } = await vectors.writeAll(rows);
  const { matches } = await vectors.query({ vector: [1, 0], top_k: 1, include_values: 'float32' });
  let walked = 0;
  for await (const _ of vectors.listAll({ limit: 500 })) walked++;
  const code = await vectors.get('nobody').catch((error) => error instanceof SagittaClientError && error.code);
  return { inserted_count, values: [...matches[0].values], walked, code };
}
`;
const MAIN = `import { roundTrip } from './round-trip.js';
console.log(JSON.stringify(await roundTrip(process.argv[2], process.argv[3])));
`;
const PAGE = `import { roundTrip } from './round-trip.js';
const result = await roundTrip(globalThis.SAGITTA_URL, 'browser').catch((error) => String(error));
await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
`;
const COMMON_JS = `import('@sagitta/client').then(async ({ createClient }) => {
  const client = createClient({ baseUrl: process.argv[2] });
  console.log(JSON.stringify(await client.service.live()));
});
`;
const EXPECTED = {
  inserted_count: 2_000,
  values: [1_999, 1],
  walked: 2_000,
  code: 'vector_not_found',
};

/** A program with a declared metadata type. Its mistake is to compare a number with a string. */
const TYPED = `import { createClient } from '@sagitta/client';
interface Article { title: string; year: number }
const articles = createClient({ baseUrl: 'http://127.0.0.1:1' }).collection<Article>('articles');
export async function titles(): Promise<string[]> {
  const { matches } = await articles.query({ vector: [1], filter: { year: { $gte: 2020 } } });
  return matches.map(({ metadata }) => metadata?.title ?? '');
}
`;
const MISTAKEN = TYPED.replace('$gte: 2020', "$gte: '2020'");

/** Compiler options under which TypeScript has to find the packages. Every declaration is checked. */
const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
};
const RESOLUTIONS = {
  nodenext: { module: 'nodenext', target: 'es2023', lib: ['es2023', 'dom'], types: [] },
  bundler: {
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.asynciterable'],
    types: [],
  },
};

describe('the client packages', { skip: NO_REGISTRY }, () => {
  let workshop: Workshop;
  let server: TestServer;
  let project: string;

  before(async () => {
    workshop = await openWorkshop();
    server = await startTestServer({ SAGITTA_CORS_ORIGINS: '*', SAGITTA_INSECURE: 'yes' });
    project = await workshop.makeProject('client', [workshop.archives['@sagitta/client']], {
      'round-trip.js': ROUND_TRIP,
      'main.js': MAIN,
      'main.cjs': COMMON_JS,
      'page.js': PAGE,
      'typed.ts': TYPED,
    });
  });
  after(async () => {
    await server.close();
    await workshop.remove();
  });

  it('@sagitta/client installs a single package that depends on no other', async () => {
    assert.deepEqual(await installed(project), ['@sagitta/client']);
    const folder = join(project, 'node_modules', '@sagitta', 'client');
    const files = await readdir(folder, { recursive: true });
    for (const file of ['LICENSE', 'README.md', 'dist/packages/client/src/client.d.ts']) {
      assert.ok(files.includes(file), `expected ${file} in the package`);
    }
    assert.deepEqual(
      files.filter((file) => file.endsWith('.map')),
      [],
    );
  });

  for (const [name, options] of Object.entries(RESOLUTIONS)) {
    it(`TypeScript finds the types with ${name}, without apache-arrow`, async () => {
      await checkTypes(project, options, ['typed.ts']);
      await writeFile(join(project, 'mistaken.ts'), MISTAKEN);
      await assert.rejects(
        checkTypes(project, options, ['mistaken.ts']),
        /mistaken\.ts.*Type 'string' is not assignable to type 'number'/,
      );
    });
  }

  it('compiles the examples with types', async () => {
    const readme = await readFile(join(ROOT, 'packages/client/README.md'), 'utf8');
    const guide = await readFile(join(ROOT, 'docs/client.md'), 'utf8');
    const [, example] = /^```ts\n([\s\S]*?)^```$/m.exec(readme)!;
    const [, typed] = /^```typescript\n([\s\S]*?)^```$/m.exec(guide)!;
    const client =
      "import { createClient } from '@sagitta/client';\nconst client = createClient({ baseUrl: '' });\n";
    await writeFile(join(project, 'readme.ts'), example!);
    await writeFile(join(project, 'guide.ts'), `${client}${typed}export { titles };\n`);
    await checkTypes(project, RESOLUTIONS.nodenext, ['readme.ts', 'guide.ts']);
  });

  it('works in Node, as a module and through a dynamic import in CommonJS', async () => {
    const words = ['main.js', server.url, 'node'];
    const { stdout } = await run(process.execPath, words, { cwd: project });
    assert.deepEqual(JSON.parse(stdout), EXPECTED);
    const common = await run(process.execPath, ['main.cjs', server.url], { cwd: project });
    assert.deepEqual(JSON.parse(common.stdout), { status: 'live' });
  });

  for (const [name, words] of [
    ['deno', ['run', '--allow-net', '--no-prompt', 'main.js']],
    ['bun', ['run', 'main.js']],
  ] as const) {
    it(`works in ${name}`, async (context) => {
      const command = await installRuntime(workshop, name, context);
      if (command === null) return;
      const { stdout } = await run(command, [...words, server.url, name], { cwd: project });
      assert.deepEqual(JSON.parse(stdout), EXPECTED);
    });
  }

  it('works in a browser, bundled by Vite', async (context) => {
    const code = await bundle(project);
    const byteCount = gzipSync(code).byteLength;
    context.diagnostic(`the client has ${byteCount} bytes in a page, after gzip`);
    assert.ok(
      byteCount <= BUNDLE_BYTES_MAX,
      `expected at most ${BUNDLE_BYTES_MAX} bytes, found ${byteCount}`,
    );
    if (NO_BROWSER !== false) return context.skip(NO_BROWSER);
    const site = await startPageSite(`<!doctype html>
<script>globalThis.SAGITTA_URL = ${JSON.stringify(server.url)};</script>
<script type="module">${code}</script>`);
    const browser = await launchBrowser({ hasWebGl: false });
    try {
      const page = await browser.newPage();
      const failure = new Promise<never>((_, reject) => page.on('pageerror', reject));
      await page.goto(site.origin);
      assert.deepEqual(JSON.parse(await Promise.race([site.result, failure])), EXPECTED);
    } finally {
      await browser.close();
      site.close();
    }
  });

  it('@sagitta/client/arrow works with apache-arrow beside it', async () => {
    const arrow = await workshop.makeProject(
      'arrow',
      [workshop.archives['@sagitta/client'], 'apache-arrow@21.2.0'],
      {
        'main.ts': `import { createClient } from '@sagitta/client';
import { queryBatches, writeBatches } from '@sagitta/client/arrow';
const client = createClient({ baseUrl: process.argv[2]! });
await client.collections.create({ id: 'arrow', dimension: 2 });
const vectors = client.collection<{ kind: string }>('arrow');
const columns = { ids: ['a', 'b'], values: Float32Array.of(1, 0, 0, 1), dimension: 2 };
await writeBatches(vectors, columns);
const nearest: unknown[] = [];
const queries = { values: columns.values, dimension: 2 };
for await (const batch of queryBatches(vectors, queries, { topK: 1 })) {
  nearest.push(...(batch.getChild('id') ?? []));
}
console.log(JSON.stringify(nearest));
`,
      },
    );
    // The declarations of apache-arrow themselves do not pass this check.
    const options = { ...RESOLUTIONS.nodenext, types: ['node'], skipLibCheck: true };
    await checkTypes(arrow, { ...options, noEmit: false }, ['main.ts']);
    const { stdout } = await run(process.execPath, ['main.js', server.url], { cwd: arrow });
    assert.deepEqual(JSON.parse(stdout), ['a', 'b']);
  });

  it('@sagitta/langchain works with @langchain/core beside it and a single client', async () => {
    const { archives } = workshop;
    const readme = await readFile(join(ROOT, 'packages/langchain/README.md'), 'utf8');
    const [, example] = /^```ts\n([\s\S]*?)^```$/m.exec(readme)!;
    const langchain = await workshop.makeProject(
      'langchain',
      [archives['@sagitta/client'], archives['@sagitta/langchain'], '@langchain/core@1.4.0'],
      { 'main.ts': example!.replace('http://127.0.0.1:8484', server.url) },
    );
    const names = await installed(langchain);
    assert.equal(names.filter((name) => name.startsWith('@sagitta/')).length, 2);
    const options = { ...RESOLUTIONS.nodenext, types: ['node'], skipLibCheck: true };
    await checkTypes(langchain, { ...options, noEmit: false }, ['main.ts']);
    const { stdout } = await run(process.execPath, ['main.js'], { cwd: langchain });
    assert.match(stdout, /pageContent: 'Dolphins'[\s\S]*pageContent: 'On whales'/);
    assert.doesNotMatch(stdout, /On bread/);
  });
});

/** Names of all packages installed in a project. */
async function installed(project: string): Promise<string[]> {
  const text = await readFile(join(project, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Readonly<Record<string, unknown>> };
  return Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 13));
}

/** Compiles the files. Throws with the compiler's output if it finds errors. */
async function checkTypes(project: string, options: object, files: readonly string[]) {
  const compilerOptions = {
    ...STRICT,
    typeRoots: [join(ROOT, 'node_modules/@types')],
    ...options,
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [compiler, '-p', 'tsconfig.json'], { cwd: project });
}

/** Bundles the round trip for browsers with Vite. Throws if the bundle contains a module of Node. */
async function bundle(project: string): Promise<string> {
  const output = (await build({
    configFile: false,
    root: project,
    logLevel: 'error',
    build: {
      write: false,
      lib: { entry: join(project, 'page.js'), formats: ['es'] },
      rolldownOptions: {
        onLog(_level, { message }) {
          throw new Error(`Vite reports: ${message}`);
        },
      },
    },
  })) as Rolldown.RolldownOutput[];
  const [chunk, ...others] = output[0]!.output;
  assert.deepEqual(others, []);
  assert.doesNotMatch(chunk!.code, /node:|__vite-browser-external|\bprocess\./);
  return chunk!.code;
}

/**
 * Installs another runtime from its package and returns its command. If that fails, skips the test and returns null.
 */
async function installRuntime(
  workshop: Workshop,
  name: 'deno' | 'bun',
  context: TestContext,
): Promise<string | null> {
  try {
    const tools = await workshop.makeProject(`runtime-${name}`, [name]);
    const command = join(tools, 'node_modules', '.bin', name);
    const { stdout } = await run(command, ['--version']);
    context.diagnostic(`${name} ${stdout.split('\n')[0]}`);
    return command;
  } catch (error) {
    context.skip(`${name} cannot be installed here: ${String(error).split('\n')[0]}`);
    return null;
  }
}
