// Publishing to a registry: missing packages are uploaded, an interrupted publication continues, and nothing is
// uploaded if a name belongs to someone else or a version is published with different content.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, before, beforeEach, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ROOT, run } from './packed.js';

const REPOSITORY = 'git+https://example.org/owner/name.git';
const NAMES = ['@example/first', '@example/second', 'third'];
/** The options that publish.mjs passes in a dry run. */
const DRY_RUN = ['--dry-run', '--tag', 'dry-run'];

interface Packument {
  readonly name: string;
  readonly 'dist-tags': Record<string, string>;
  readonly versions: Record<string, object>;
}

interface Packed {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
  readonly archive: string;
}

describe('publishing packages', () => {
  let folder: string;
  let registry: Server;
  let packed: readonly Packed[];
  const packuments = new Map<string, Packument>();
  /** Names in the order of their uploads. */
  let uploads: string[] = [];
  /** Name of a package whose upload the registry refuses. */
  let refused: string | undefined;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sagitta-registry-'));
    registry = createServer(async (request, response) => {
      const name = decodeURIComponent(request.url!.slice(1));
      const reply = (status: number, body: object) =>
        response
          .writeHead(status, { 'content-type': 'application/json' })
          .end(JSON.stringify(body));
      if (request.method === 'GET') {
        const found = packuments.get(name);
        reply(found === undefined ? 404 : 200, found ?? { error: 'Not found' });
        return;
      }
      const { versions, ...rest } = (await json(request)) as Packument;
      if (name === refused) {
        reply(403, { error: 'refused' });
        return;
      }
      uploads.push(name);
      packuments.set(name, {
        ...rest,
        versions: { ...packuments.get(name)?.versions, ...versions },
      });
      reply(201, {});
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    packed = await Promise.all(NAMES.map((name) => pack(name, 'content')));
  });

  after(async () => {
    registry.close();
    registry.closeAllConnections();
    await rm(folder, { recursive: true });
  });

  beforeEach(() => {
    packuments.clear();
    uploads = [];
    refused = undefined;
  });

  async function pack(name: string, content: string): Promise<Packed> {
    const project = await mkdtemp(join(folder, 'package-'));
    const repository = { type: 'git', url: REPOSITORY };
    await writeFile(
      join(project, 'package.json'),
      JSON.stringify({ name, version: '1.2.3', repository, files: ['index.js'] }),
    );
    await writeFile(join(project, 'index.js'), `// ${content}`);
    const archives = join(project, 'archives');
    await mkdir(archives);
    const words = ['pack', '--json', '--pack-destination', archives];
    const [found] = JSON.parse((await run('npm', words, { cwd: project })).stdout);
    return {
      name,
      version: '1.2.3',
      integrity: found.integrity,
      archive: join(archives, found.filename),
    };
  }

  /** Returns what publishing prints. Rejects with the output and the error if it fails. */
  async function publish(packages: readonly Packed[], options: object = {}): Promise<string> {
    const host = `//127.0.0.1:${(registry.address() as AddressInfo).port}/`;
    const settings = join(folder, 'npmrc');
    await writeFile(settings, `${host}:_auth=bm9uZTpub25l\n`);
    const script = pathToFileURL(join(ROOT, 'scripts/packages/registry.mjs')).href;
    const given = {
      repositoryUrl: REPOSITORY,
      isDryRun: false,
      words: ['--tag', 'latest'],
      ...options,
    };
    const program = `const { publishMissing } = await import(${JSON.stringify(script)});
      await publishMissing(${JSON.stringify(packages)}, ${JSON.stringify(given)});`;
    const environment = Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name));
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', program], {
      env: {
        ...Object.fromEntries(environment),
        NPM_CONFIG_REGISTRY: `http:${host}`,
        NPM_CONFIG_USERCONFIG: settings,
        NPM_CONFIG_CACHE: join(folder, 'cache'),
      },
    });
    return stdout + stderr;
  }

  it('uploads every package, in order', async () => {
    await publish(packed);
    assert.deepEqual(uploads, NAMES);
  });

  it('continues after a failed upload and uploads nothing twice', async () => {
    refused = '@example/second';
    await assert.rejects(publish(packed), /could not publish @example\/second 1\.2\.3/);
    assert.deepEqual(uploads, ['@example/first']);
    refused = undefined;
    assert.match(await publish(packed), /@example\/first 1\.2\.3 is already in the registry/);
    assert.deepEqual(uploads, NAMES);
    const printed = await publish(packed, { isDryRun: true, words: DRY_RUN });
    assert.doesNotMatch(printed, /without --dry-run/);
    assert.deepEqual(uploads, NAMES);
  });

  it('uploads nothing if a version is published with different content', async () => {
    const other = await pack('third', 'other content');
    await publish([other]);
    await assert.rejects(publish(packed), (error: Error) => {
      assert.match(error.message, /nothing was uploaded/);
      assert.match(error.message, /third 1\.2\.3 is in the registry with different content/);
      assert.ok(error.message.includes(other.integrity));
      return true;
    });
    assert.deepEqual(uploads, ['third']);
  });

  for (const repository of [undefined, { url: 'git+https://example.org/others/third.git' }]) {
    it(`uploads nothing if a name is taken by ${repository?.url ?? 'no repository'}`, async () => {
      packuments.set('third', {
        name: 'third',
        'dist-tags': { latest: '1.0.23' },
        versions: { '1.0.23': { name: 'third', version: '1.0.23', repository } },
      });
      await assert.rejects(publish(packed), (error: Error) => {
        assert.match(error.message, /the name third is taken: the registry has version 1\.0\.23/);
        assert.ok(error.message.includes(repository?.url ?? 'no repository'));
        return true;
      });
      const printed = await publish(packed, { isDryRun: true, words: DRY_RUN });
      assert.match(printed, /without --dry-run this would fail: nothing was uploaded/);
      assert.match(printed, /third 1\.2\.3 was not uploaded/);
      assert.deepEqual(uploads, []);
    });
  }
});
