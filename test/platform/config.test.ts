import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { SagittaError } from '../../src/common/errors.js';
import { DEFAULT_LIMITS } from '../../src/common/limits.js';
import { ENGINE_NAMES } from '../../src/engine/core/engine.js';
import {
  type ConfigSources,
  describeSettings,
  ENGINE_CHOICES,
  loadConfig,
} from '../../src/platform/config.js';

function refuse(sources: ConfigSources): string {
  let message = '';
  assert.throws(
    () => loadConfig(sources),
    (error: SagittaError) => {
      message = error.message;
      return error.code === 'configuration_invalid';
    },
  );
  return message;
}

/** Large enough that no limit is lowered. */
const LARGE_MEMORY = 64 * 1024 ** 3;

describe('the configuration', () => {
  it('derives values from several settings', () => {
    const { memory, isConsoleServed, blobStore, embedding, tracesUrl, ignoredVariables, limits } =
      loadConfig({ env: {}, memoryBytes: LARGE_MEMORY });
    assert.deepEqual(
      { memory, isConsoleServed, blobStore, embedding, tracesUrl, ignoredVariables, limits },
      {
        memory: LARGE_MEMORY,
        isConsoleServed: true,
        blobStore: null,
        embedding: [],
        tracesUrl: null,
        ignoredVariables: [],
        limits: DEFAULT_LIMITS,
      },
    );
  });

  it('prefers the command line to the environment', () => {
    const config = loadConfig({
      env: {
        SAGITTA_PORT: '1',
        SAGITTA_DATA_DIR: '/d',
        SAGITTA_THREADS: '3',
        SAGITTA_DIMENSION_MAX: '99',
        SAGITTA_RETENTION_MS: '60000',
        PATH: '/bin',
      },
      overrides: { port: '2', topKMax: '500', host: undefined },
    });
    assert.deepEqual(
      [config.port, config.dataDir, config.threads, config.host],
      [2, '/d', 3, '127.0.0.1'],
    );
    assert.deepEqual(config.limits, {
      ...DEFAULT_LIMITS,
      dimensionMax: 99,
      retentionMs: 60_000,
      topKMax: 500,
    });
  });

  it('rejects invalid values with the setting, the value and what is expected', () => {
    for (const [variable, value, expected] of [
      ['SAGITTA_PORT', 'http', 'an integer from 0 to 65535'],
      ['SAGITTA_PORT', '65536', 'an integer'],
      ['SAGITTA_PORT', '-1', 'an integer'],
      ['SAGITTA_PORT', '80.5', 'an integer'],
      ['SAGITTA_PORT', '1e3', 'an integer'],
      ['SAGITTA_PORT', '', 'an integer'],
      ['SAGITTA_ENGINE', 'gpu', 'auto, cuda, tensorflow, simd, wasm'],
      ['SAGITTA_DEVICE_MEMORY', '90%', 'an integer from 268435456'],
      ['SAGITTA_LOG_LEVEL', 'loud', 'debug, info'],
      ['SAGITTA_INSECURE', 'true', 'yes or no'],
      ['SAGITTA_DATA_DIR', '', 'a path'],
      ['SAGITTA_DIMENSION_MAX', '0', 'an integer from 1'],
      ['SAGITTA_VECTOR_ID_BYTES_MAX', '513', 'an integer from 26 to 512'],
    ] as const) {
      const message = refuse({ env: { [variable]: value } });
      assert.ok(
        message.startsWith(`${variable} is ${JSON.stringify(value)}; expected ${expected}`),
        message,
      );
    }
    assert.match(refuse({ env: {}, overrides: { dataDir: '' } }), /^--data-dir is ""; expected/);
  });

  it('rejects unknown settings, except those of the tests', () => {
    assert.equal(
      refuse({ env: { SAGITTA_PROT: '1' } }),
      'SAGITTA_PROT is not a known setting; did you mean SAGITTA_PORT? See sagitta serve --help.',
    );
    assert.match(
      refuse({ env: { SAGITTA_COLOUR: '1' } }),
      /^SAGITTA_COLOUR is not a known setting; see sagitta serve --help\.$/,
    );
    assert.match(refuse({ env: {}, overrides: { prot: '1' } }), /--prot/);
    loadConfig({ env: { SAGITTA_TEST_SEED: '1' } });
  });

  it('lists everything that is wrong at once', () => {
    const message = refuse({
      env: {
        SAGITTA_PROT: '1',
        SAGITTA_LOG_LEVEL: 'loud',
        SAGITTA_HOST: '0.0.0.0',
        SAGITTA_JWKS: 'keys.json',
        SAGITTA_EMBEDDING_KEYS: 'far=NO_SUCH_VARIABLE',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
        SAGITTA_TOP_K_MAX: '5',
      },
      overrides: { threads: 'many' },
    });
    const [head, ...lines] = message.split('\n');
    assert.equal(head, 'There are 8 problems with the settings:');
    const starts = [
      'SAGITTA_PROT is not a known setting',
      'SAGITTA_LOG_LEVEL is "loud"; expected debug, info',
      '--threads is "many"; expected an integer from 1 to 1024.',
      'OTEL_EXPORTER_OTLP_ENDPOINT is "collector:4318"',
      'SAGITTA_EMBEDDING_KEYS has a key for "far"',
      'SAGITTA_JWKS requires SAGITTA_JWT_ISSUER and SAGITTA_JWT_AUDIENCE',
      'SAGITTA_HOST is "0.0.0.0"; without TLS',
      'SAGITTA_TOP_K_DEFAULT is 10; expected at most SAGITTA_TOP_K_MAX, which is 5.',
    ];
    for (const [at, start] of starts.entries()) {
      assert.ok(lines[at]?.startsWith(`  ${start}`), `${lines[at]} begins with ${start}`);
    }
    assert.equal(lines.length, starts.length);
  });

  it('reports no contradiction with a setting that it could not read', () => {
    for (const env of [
      { SAGITTA_TLS_CERT: '', SAGITTA_TLS_KEY: 'key.pem', SAGITTA_HOST: '0.0.0.0' },
      { SAGITTA_HOST: '0.0.0.0', SAGITTA_INSECURE: 'true' },
      { SAGITTA_TOP_K_MAX: '5', SAGITTA_TOP_K_DEFAULT: 'ten' },
      { SAGITTA_EMBEDDING_ENDPOINTS: 'nowhere', SAGITTA_EMBEDDING_KEYS: 'far=PATH', PATH: '/bin' },
    ]) {
      assert.match(refuse({ env }), /^SAGITTA_\w+ is ".*"; expected [^\n]*$/);
    }
  });

  it('ignores what Kubernetes sets for a Service named sagitta, and nothing else', () => {
    const env = {
      SAGITTA_SERVICE_HOST: '10.96.12.7',
      SAGITTA_SERVICE_PORT: '8484',
      SAGITTA_SERVICE_PORT_HTTP: '8484',
      SAGITTA_PORT: 'tcp://10.96.12.7:8484',
      SAGITTA_PORT_8484_TCP: 'tcp://10.96.12.7:8484',
      SAGITTA_PORT_8484_TCP_PROTO: 'tcp',
      SAGITTA_PORT_8484_TCP_PORT: '8484',
      SAGITTA_PORT_8484_TCP_ADDR: '10.96.12.7',
      SAGITTA_GPU_SERVICE_HOST: 'fd00::7',
      SAGITTA_GPU_PORT: 'tcp://[fd00::7]:8484',
    };
    const config = loadConfig({ env });
    assert.equal(config.port, 8484);
    assert.deepEqual(config.ignoredVariables, Object.keys(env));
    assert.equal(loadConfig({ env, overrides: { port: '9000' } }).port, 9000);
    for (const [variable, value] of [
      ['SAGITTA_PORT', 'tcp://sagitta:8484'],
      ['SAGITTA_PORT', 'http://10.96.12.7:8484'],
      ['SAGITTA_PORT', 'tcp://10.96.12.7'],
      ['SAGITTA_PORT', 'tcp://10.96.12.7:84840'],
      ['SAGITTA_PORT', 'tcp://10.96.12.7:8484/'],
      ['SAGITTA_SERVICE_HOST', 'example.org'],
      ['SAGITTA_SERVICE_PORT', 'http'],
      ['SAGITTA_PORT_8484_TCP_PROTO', 'icmp'],
      ['SAGITTA_PORT_8484_TCP_NAME', 'tcp'],
    ] as const) {
      assert.match(refuse({ env: { ...env, [variable]: value } }), new RegExp(`^${variable} is `));
    }
  });

  it('requires an explicit setting for clear text on addresses other than loopback', () => {
    for (const host of [
      '0.0.0.0',
      '::',
      '192.168.0.7',
      'example.org',
      '1270.0.0.1',
      '127.evil.com',
    ]) {
      assert.match(refuse({ env: { SAGITTA_HOST: host } }), /SAGITTA_INSECURE=yes/);
      const config = loadConfig({ env: { SAGITTA_HOST: host, SAGITTA_INSECURE: 'yes' } });
      assert.deepEqual([config.host, config.insecure], [host, true]);
    }
    for (const host of ['localhost', '::1', '127.0.0.9', '::ffff:127.0.0.1']) {
      assert.equal(loadConfig({ env: { SAGITTA_HOST: host } }).host, host);
    }
  });

  it('reads the endpoint for traces from the variables of OpenTelemetry', () => {
    const common = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
    for (const [env, url] of [
      [common, 'http://collector:4318/v1/traces'],
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c/otlp/' }, 'https://c/otlp/v1/traces'],
      [{ ...common, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t/x' }, 'http://t/x'],
      [{ ...common, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' }, 'http://collector:4318/v1/traces'],
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, null],
    ] as const) {
      assert.equal(loadConfig({ env }).tracesUrl, url);
    }
    for (const endpoint of ['collector:4318', 'ftp://c', 'http://']) {
      const message = refuse({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } });
      assert.match(
        message,
        /^OTEL_EXPORTER_OTLP_ENDPOINT is ".*"; expected an http or https URL\.$/,
      );
    }
  });

  it('has no default above its maximum', () => {
    assert.match(refuse({ env: { SAGITTA_TOP_K_MAX: '5' } }), /SAGITTA_TOP_K_DEFAULT is 10/);
    const config = loadConfig({ env: { SAGITTA_TOP_K_MAX: '5', SAGITTA_TOP_K_DEFAULT: '5' } });
    assert.equal(config.limits.topKDefault, 5);
  });

  it('describes every setting, with a default that it accepts', () => {
    const settings = describeSettings();
    const named = settings.find(({ name }) => name === 'shutdownMs');
    assert.deepEqual(
      [named?.variable, named?.option, named?.default, named?.unit],
      ['SAGITTA_SHUTDOWN_MS', '--shutdown-ms', '10000', 'milliseconds'],
    );
    const env = Object.fromEntries(
      settings.filter((setting) => setting.default !== '').map((s) => [s.variable, s.default]),
    );
    assert.deepEqual(loadConfig({ env }), loadConfig({ env: {} }));
    for (const setting of settings)
      assert.ok(setting.help.endsWith('.') && setting.expected !== '');
    // The endpoint for traces comes from OpenTelemetry's variables, all others from settings.
    const {
      limits,
      tracesUrl,
      embedding,
      blobStore,
      isConsoleServed,
      ignoredVariables,
      serviceManager,
      ...others
    } = loadConfig({ env: {} });
    assert.deepEqual(
      [tracesUrl, embedding, blobStore, isConsoleServed, ignoredVariables, serviceManager],
      [null, [], null, true, [], null],
    );
    assert.equal(settings.length, Object.keys(others).length + Object.keys(limits).length);
  });

  it('reads the shared file store of a cluster', () => {
    const cluster = {
      SAGITTA_CLUSTER: 'nats://a:4222, nats://b:4222',
      SAGITTA_CLUSTER_SECRET: 's'.repeat(32),
    };
    const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
    const folder = loadConfig({ env: { ...cluster, SAGITTA_BLOBS: '/mnt/blobs' } });
    assert.deepEqual(folder.cluster, ['nats://a:4222', 'nats://b:4222']);
    assert.deepEqual(folder.blobStore, { kind: 'folder', folder: '/mnt/blobs' });
    const s3 = { SAGITTA_BLOBS: 's3://bucket/a/b?endpoint=http://minio:9000&region=eu', ...keys };
    assert.deepEqual(loadConfig({ env: { ...cluster, ...s3 } }).blobStore, {
      kind: 's3',
      endpoint: 'http://minio:9000',
      bucket: 'bucket',
      prefix: 'a/b/',
      region: 'eu',
      accessKeyId: 'id',
      secretAccessKey: 'secret',
    });
    assert.match(
      refuse({ env: { SAGITTA_BLOBS: '/mnt/blobs' } }),
      /requires SAGITTA_CLUSTER to be set/,
    );
    assert.match(
      refuse({ env: { ...cluster, SAGITTA_BLOBS: 's3://bucket' } }),
      /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set/,
    );
    assert.match(
      refuse({ env: { ...cluster, ...keys, SAGITTA_BLOBS: 's3:bucket' } }),
      /expected s3:\/\/bucket\/prefix/,
    );
    assert.match(refuse({ env: { SAGITTA_CLUSTER: 'a:4222' } }), /expected URLs of NATS servers/);
    const monitors = { SAGITTA_CLUSTER_MONITORS: 'http://a:8222, http://b:8222' };
    const checked = loadConfig({ env: { ...cluster, SAGITTA_BLOBS: '/mnt/blobs', ...monitors } });
    assert.deepEqual(checked.clusterMonitors, ['http://a:8222', 'http://b:8222']);
    assert.match(refuse({ env: monitors }), /requires SAGITTA_CLUSTER to be set/);
    assert.match(
      refuse({ env: { SAGITTA_CLUSTER_MONITORS: 'a:8222' } }),
      /expected URLs of monitoring ports/,
    );
  });

  describe('credentials of a cluster', () => {
    const SECRET = 'the-secret-of-all-nodes-000000000';
    const usual = {
      SAGITTA_CLUSTER: 'nats://a:4222',
      SAGITTA_CLUSTER_SECRET: SECRET,
      SAGITTA_BLOBS: '/mnt/blobs',
    };

    it('are taken out of the URLs of NATS servers', () => {
      const read = (urls: string) => loadConfig({ env: { ...usual, SAGITTA_CLUSTER: urls } });
      const named = read('nats://me:p%40ss:w%2C@a:4222,tls://me:p%40ss:w%2C@b:4222,nats://c:1');
      assert.deepEqual(named.cluster, ['nats://a:4222', 'tls://b:4222', 'nats://c:1']);
      assert.deepEqual([named.clusterUser, named.clusterPassword], ['me', 'p@ss:w,']);
      assert.equal(named.clusterToken, null);
      const token = read('nats://token@[::1]:4222');
      assert.deepEqual([token.cluster, token.clusterToken], [['nats://[::1]:4222'], 'token']);
    });

    it('are not shown if a URL is not valid, and cause no further problem', () => {
      const read = (url: string) => refuse({ env: { ...usual, SAGITTA_CLUSTER: url } });
      for (const [url, shown] of [
        ['nats://me:hidden', 'nats://me:***'],
        ['nats://me:hid/den', 'nats://me:***'],
        ['nats://me:hidden@a:x', 'nats://***@a:x'],
        ['nats://a:4222/path', 'nats://a:***'],
      ]) {
        assert.equal(read(url!), `SAGITTA_CLUSTER has "${shown}"; expected nats://host:4222.`);
      }
      assert.match(
        read('nats://me:50%@a:4222'),
        /^SAGITTA_CLUSTER contains .* write %25 instead\.$/,
      );
    });

    it('come from the environment or from files, never from the command line', () => {
      const folder = mkdtempSync(join(tmpdir(), 'sagitta-config-'));
      const file = join(folder, 'secret');
      writeFileSync(file, `${SECRET}\n`);
      try {
        const { SAGITTA_CLUSTER_SECRET: _, ...rest } = usual;
        const env = { ...rest, SAGITTA_CLUSTER_SECRET_FILE: file };
        assert.deepEqual(loadConfig({ env }).clusterSecret, [SECRET]);
        assert.match(
          refuse({ env: { ...usual, SAGITTA_CLUSTER_SECRET_FILE: file } }),
          /^SAGITTA_CLUSTER_SECRET and SAGITTA_CLUSTER_SECRET_FILE are both set; expected one/,
        );
        const absent = join(folder, 'absent');
        assert.match(
          refuse({ env: { ...env, SAGITTA_CLUSTER_SECRET_FILE: absent } }),
          /^SAGITTA_CLUSTER_SECRET_FILE is ".*absent", which cannot be read: ENOENT/,
        );
        for (const [content, reason] of [
          ['', 'is empty'],
          [' \n', 'is empty'],
          [Buffer.from([0xff, 0xfe, ...Buffer.from(SECRET)]), 'is not text in UTF-8'],
        ] as const) {
          writeFileSync(file, content);
          assert.equal(
            refuse({ env }),
            `SAGITTA_CLUSTER_SECRET_FILE is "${file}", which ${reason}.`,
          );
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
      const two = { ...usual, SAGITTA_CLUSTER_SECRET: `${SECRET}-new, ${SECRET}` };
      assert.deepEqual(loadConfig({ env: two }).clusterSecret, [`${SECRET}-new`, SECRET]);
      assert.deepEqual(
        describeSettings()
          .filter(({ fileVariable }) => fileVariable !== null)
          .map(({ name }) => name),
        ['clusterSecret', 'clusterPassword', 'clusterToken', 'clusterNkey'],
      );
    });

    it('never appear in messages', () => {
      const hidden = 'hidden-hidden-hidden';
      for (const env of [
        { SAGITTA_CLUSTER_SECRET: hidden },
        { SAGITTA_CLUSTER_PASSWORD: hidden },
        { SAGITTA_CLUSTER_NKEY: hidden },
        { SAGITTA_CLUSTER: `http://me:${hidden}@a:4222` },
        { SAGITTA_CLUSTER: `nats://me:${hidden}@a:x` },
        { SAGITTA_CLUSTER: `nats://me:${hidden}@a:4222, nats://me:other@b:4222` },
        { SAGITTA_CLUSTER: `nats://me:${hidden}%@a:4222` },
        { SAGITTA_CLUSTER: `nats://me:${hidden}/x@a:y` },
        { SAGITTA_CLUSTER: `nats://me:${hidden},x@a:4222` },
        { SAGITTA_CLUSTER: `nats://${hidden}@a:4222`, SAGITTA_CLUSTER_TOKEN: hidden },
        { SAGITTA_CLUSTER_MONITORS: `http://me:${hidden}@a:8222` },
        { SAGITTA_CLUSTER_URL: `http://me:${hidden}@a` },
        { SAGITTA_BLOBS: `s3://me:${hidden}@` },
        { OTEL_EXPORTER_OTLP_ENDPOINT: `me:${hidden}@a` },
        { OTEL_EXPORTER_OTLP_ENDPOINT: `ftp://me:${hidden}@a` },
        { SAGITTA_JWKS: `http://me:${hidden}@a`, SAGITTA_LOG_LEVEL: 'x' },
        { SAGITTA_EMBEDDING_ENDPOINTS: `a=ftp://me:${hidden}@a` },
      ]) {
        const message = refuse({ env: { ...usual, ...env } });
        assert.ok(!message.includes(hidden), message);
      }
    });

    it('must belong to one user', () => {
      for (const [env, problem] of [
        [{ SAGITTA_CLUSTER_USER: 'me' }, /CLUSTER_USER requires SAGITTA_CLUSTER_PASSWORD/],
        [
          { SAGITTA_CLUSTER_TOKEN: 't', SAGITTA_CLUSTER_CREDENTIALS: 'a.creds' },
          /SAGITTA_CLUSTER_TOKEN and SAGITTA_CLUSTER_CREDENTIALS are set; expected only one of them/,
        ],
        [
          { SAGITTA_CLUSTER: 'nats://a:b@c:4222', SAGITTA_CLUSTER_TOKEN: 't' },
          /SAGITTA_CLUSTER and SAGITTA_CLUSTER_TOKEN contain different credentials/,
        ],
        [{ SAGITTA_CLUSTER_TLS_CERT: 'a.pem' }, /requires SAGITTA_CLUSTER_TLS_KEY/],
      ] as const) {
        assert.match(refuse({ env: { ...usual, ...env } }), problem);
      }
    });

    it('are required unless everything is on loopback', () => {
      const { SAGITTA_CLUSTER_SECRET: _, ...open } = usual;
      const local = { ...open, SAGITTA_CLUSTER: 'nats://127.0.0.1:4222,nats://[::1]:4222' };
      assert.equal(loadConfig({ env: local }).clusterSecret, null);
      for (const [env, found] of [
        [open, /^SAGITTA_CLUSTER is "nats:\/\/a:4222", which is not on loopback/],
        [{ ...local, SAGITTA_CLUSTER_URL: 'https://node-0:8484' }, /^SAGITTA_CLUSTER_URL is/],
        [{ ...local, SAGITTA_HOST: '0.0.0.0', SAGITTA_INSECURE: 'yes' }, /^SAGITTA_HOST is/],
      ] as const) {
        const message = refuse({ env });
        assert.match(message, found);
        assert.match(message, /Give all nodes the same SAGITTA_CLUSTER_SECRET/);
        loadConfig({ env: { ...env, SAGITTA_CLUSTER_SECRET: SECRET } });
      }
    });
  });

  it('refuses two replicas, which tolerate no failure', () => {
    for (const count of [1, 3, 4, 5]) {
      const { clusterReplicas } = loadConfig({ env: { SAGITTA_CLUSTER_REPLICAS: `${count}` } });
      assert.equal(clusterReplicas, count);
    }
    for (const text of ['0', '2', '6', 'x']) {
      const env = { SAGITTA_CLUSTER_REPLICAS: text };
      assert.match(refuse({ env }), /expected 1, or an integer from 3 to 5/);
    }
  });

  it('treats an empty zone, as Kubernetes passes it, as unknown', () => {
    const zoneOf = (zone: string) =>
      loadConfig({ env: { SAGITTA_CLUSTER_ZONE: zone } }).clusterZone;
    assert.equal(zoneOf(''), null);
    assert.equal(zoneOf('eu-central-1a'), 'eu-central-1a');
    assert.match(refuse({ env: { SAGITTA_CLUSTER_ZONE: 'a b' } }), /is "a b"; expected letters/);
  });

  it('accepts origins in the form that browsers send', () => {
    const given = 'https://app.example.org, http://localhost:5173,capacitor://localhost';
    assert.deepEqual(loadConfig({ env: { SAGITTA_CORS_ORIGINS: given } }).corsOrigins, [
      'https://app.example.org',
      'http://localhost:5173',
      'capacitor://localhost',
    ]);
    assert.deepEqual(loadConfig({ env: { SAGITTA_CORS_ORIGINS: '*' } }).corsOrigins, ['*']);
    for (const wrong of [
      'https://app.example.org/',
      'https://app.example.org:443',
      'https://App.example.org',
      'https://*.example.org',
      'app.example.org',
      'null',
      '',
    ]) {
      assert.match(refuse({ env: { SAGITTA_CORS_ORIGINS: wrong } }), /without a path/, wrong);
    }
    assert.match(refuse({ env: { SAGITTA_CORS_METHODS: 'GET,TRACE' } }), /expected .* GET, HEAD/);
    assert.match(refuse({ env: { SAGITTA_CORS_HEADERS: 'a b' } }), /names of headers/);
  });

  it('serves the console unless it is off', () => {
    assert.equal(loadConfig({ env: { SAGITTA_CONSOLE: 'off' } }).isConsoleServed, false);
    assert.match(refuse({ env: { SAGITTA_CONSOLE: 'no' } }), /"no"; expected on, off/);
  });

  it('reads embedding endpoints, with the keys of the variables that it names', () => {
    const endpoints = 'local=http://127.0.0.1:8080/v1/embeddings, far=https://a.example/embed?x=1';
    const env = { SAGITTA_EMBEDDING_ENDPOINTS: endpoints, SAGITTA_EMBEDDING_KEYS: 'far=FAR_KEY' };
    assert.deepEqual(loadConfig({ env: { ...env, FAR_KEY: 'secret' } }).embedding, [
      { name: 'local', url: 'http://127.0.0.1:8080/v1/embeddings', key: null },
      { name: 'far', url: 'https://a.example/embed?x=1', key: 'secret' },
    ]);
    assert.match(refuse({ env }), /names the variable FAR_KEY for "far", which is not set/);
    assert.match(
      refuse({ env: { ...env, SAGITTA_EMBEDDING_KEYS: 'other=FAR_KEY' } }),
      /"other", which is not in SAGITTA_EMBEDDING_ENDPOINTS/,
    );
    for (const wrong of ['http://a.example', 'local=ftp://a.example', 'a b=http://a.example']) {
      assert.match(refuse({ env: { SAGITTA_EMBEDDING_ENDPOINTS: wrong } }), /names and URLs/);
    }
    const twice = 'local=http://a.example,local=http://b.example';
    assert.match(refuse({ env: { SAGITTA_EMBEDDING_ENDPOINTS: twice } }), /the same name twice/);
    const port = 'local=http://a.example:99999/';
    assert.match(
      refuse({ env: { SAGITTA_EMBEDDING_ENDPOINTS: port } }),
      /no valid URL for "local"/,
    );
  });

  it('offers every engine', () => {
    assert.deepEqual([...ENGINE_CHOICES].sort(), ['auto', ...ENGINE_NAMES].sort());
  });

  it('lowers the total size of requests to shares of the memory', () => {
    const limitsOf = (env: Record<string, string>) =>
      loadConfig({ env, memoryBytes: 2 ** 30 }).limits;
    const { bodyBytesMax, bodyBytesInFlightMax, replyBytesInFlightMax, filterCacheBytesMax } =
      limitsOf({});
    assert.equal(bodyBytesMax, DEFAULT_LIMITS.bodyBytesMax);
    assert.equal(bodyBytesInFlightMax, 2 ** 26);
    assert.equal(replyBytesInFlightMax, 2 ** 27);
    assert.equal(filterCacheBytesMax, DEFAULT_LIMITS.filterCacheBytesMax);
    const small = limitsOf({ SAGITTA_MEMORY: String(2 ** 28) });
    assert.equal(small.bodyBytesMax, 2 ** 24);
    assert.equal(small.filterCacheBytesMax, 2 ** 23);
    const set = limitsOf({ SAGITTA_REPLY_BYTES_IN_FLIGHT_MAX: '300000000' });
    assert.equal(set.replyBytesInFlightMax, 300_000_000);
  });
});
