import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type ConnectionOptions, connect, TLSSocket } from 'node:tls';
import type { Principal } from '../../../src/common/access.js';
import type { Clock } from '../../../src/common/clock.js';
import { SagittaError } from '../../../src/common/errors.js';
import { Authenticator, type TokenVerifier } from '../../../src/server/auth/authenticator.js';
import { parseAlternativeNames } from '../../../src/server/auth/certificate-names.js';
import { openCertificateTable } from '../../../src/server/auth/certificates.js';
import {
  type Authority,
  type CertificateOptions,
  createAuthority,
} from '../../support/certificates.js';
import {
  type Answer,
  type LogLine,
  openSession,
  overHttp1,
  overHttp2,
  recordingLogger,
  type SecureService,
  startSecureService,
  until,
} from '../secure-service.js';

const TABLE = [
  { subject: 'CN=batch,O=Acme', principal: 'batch', scopes: ['vectors:read'] },
  { subject: 'O=Acme\\, Inc.,CN=Größe \\+ Co', principal: 'odd', scopes: ['vectors:read'] },
  { san: 'dns:Batch.internal', principal: 'by-dns', scopes: ['vectors:read'] },
  { san: 'uri:spiffe://acme/batch', principal: 'by-uri', scopes: ['vectors:read'] },
  { san: 'email:batch@Acme.example', principal: 'by-email', scopes: ['vectors:read'] },
  { san: 'ip:10.1.2.3', principal: 'by-ip', scopes: ['vectors:read'] },
  { san: 'ip:2001:db8::1', principal: 'by-ip6', scopes: ['vectors:read'] },
  { subject: 'CN=writer', principal: 'writer', scopes: ['vectors:write'] },
];
const ASKING = { path: '/collections/c/vectors/a' };

/** Accepts the token `good`, and records all tokens that it gets. */
const tokens: TokenVerifier = {
  verify(token) {
    if (token !== 'good') throw new SagittaError('credentials_invalid', 'Unknown.');
    return { id: 'token:test', grants: [{ scope: 'vectors:read', collections: '*' }] };
  },
};

describe('client certificates', () => {
  let clients: Authority;
  let secure: SecureService;
  let certificates: Awaited<ReturnType<typeof openCertificateTable>>;
  let folder: string;
  let table: string;
  const log: LogLine[] = [];
  let shiftMs = 0;
  const clock: Clock = { now: () => Date.now() + shiftMs };
  /** The ids of the principals found, in order. */
  const seen: string[] = [];

  class RecordingAuthenticator extends Authenticator {
    override identify(
      credentials: Parameters<Authenticator['identify']>[0],
    ): Principal | Promise<Principal> {
      const found = super.identify(credentials);
      if (!(found instanceof Promise)) seen.push(found.id);
      return found;
    }
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sagitta-principals-'));
    table = join(folder, 'principals.json');
    await writeFile(table, JSON.stringify(TABLE));
    clients = await createAuthority('CN=Client authority');
    certificates = await openCertificateTable({ path: table, clock, logger: recordingLogger(log) });
    secure = await startSecureService({
      clientAuthority: clients,
      authenticator: new RecordingAuthenticator({
        tokens,
        certificates,
        // The harness calls the service without a network connection.
        isOperator: (socket) => !(socket instanceof TLSSocket),
      }),
    });
    seen.length = 0;
  });
  after(async () => {
    certificates.close();
    await secure.close();
    await rm(folder, { recursive: true });
  });

  async function client(
    options: CertificateOptions,
    authority = clients,
  ): Promise<ConnectionOptions> {
    return {
      ca: secure.authority.cert,
      ...(await authority.issue({ purpose: 'client', ...options })),
    };
  }
  /** Over both protocols, whose results must be equal. */
  async function ask(
    tls: ConnectionOptions,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const one = await overHttp1(secure.port, { ...ASKING, headers }, tls);
    const session = await openSession(secure.url, tls);
    const two = await overHttp2(session, { ...ASKING, headers });
    session.destroy();
    assert.equal(one.status, two.status, `${one.text}\n${two.text}`);
    return two;
  }
  async function assertRefused(
    tls: ConnectionOptions,
    detail: RegExp,
    headers?: Record<string, string>,
  ): Promise<void> {
    const { status, headers: found, text } = await ask(tls, headers);
    const problem = JSON.parse(text);
    assert.equal(`${status} ${problem.code}`, '401 credentials_invalid', text);
    assert.match(problem.detail, detail);
    assert.match(String(found['www-authenticate']), /^Bearer/);
  }

  it('are accepted by subject, in either order and with any escapes', async () => {
    for (const [subject, id] of [
      ['CN=batch,O=Acme', 'certificate:batch'],
      ['O=Acme,CN=batch', 'certificate:batch'],
      ['CN=Größe \\+ Co,O=Acme\\, Inc.', 'certificate:odd'],
    ] as const) {
      seen.length = 0;
      const { status, text } = await ask(await client({ subject }));
      assert.equal(status, 200, text);
      assert.deepEqual(seen, [id, id]);
    }
  });

  it('are accepted by each kind of alternative name', async () => {
    for (const [type, value, id] of [
      ['dns', 'batch.INTERNAL', 'by-dns'],
      ['url', 'spiffe://acme/batch', 'by-uri'],
      ['email', 'batch@acme.EXAMPLE', 'by-email'],
      ['ip', '10.1.2.3', 'by-ip'],
      ['ip', '2001:db8:0:0:0:0:0:1', 'by-ip6'],
    ] as const) {
      seen.length = 0;
      const { status, text } = await ask(
        await client({
          subject: 'CN=nobody',
          san: [
            { type: 'dns', value: 'x.y' },
            { type, value },
          ],
        }),
      );
      assert.equal(status, 200, text);
      assert.deepEqual(seen, [`certificate:${id}`, `certificate:${id}`]);
    }
  });

  it('grant the scopes of the table and no more', async () => {
    const { status, text } = await ask(await client({ subject: 'CN=writer' }));
    assert.equal(`${status} ${JSON.parse(text).code}`, '403 insufficient_scope');
  });

  it('are required', async () => {
    const { status, text, headers } = await ask({ ca: secure.authority.cert });
    assert.equal(`${status} ${JSON.parse(text).code}`, '401 credentials_missing');
    assert.match(String(headers['www-authenticate']), /^Bearer/);
    const open = await overHttp1(secure.port, { path: '/livez' }, { ca: secure.authority.cert });
    assert.equal(open.status, 200);
  });

  it('are refused if not signed by a configured authority, not for clients, or expired', async () => {
    const foreign = await createAuthority('CN=Client authority');
    const batch = { subject: 'CN=batch,O=Acme' };
    await assertRefused(await client(batch, foreign), /not signed by a trusted authority/);
    await assertRefused(await client({ ...batch, purpose: 'server' }), /not a client certificate/);
    const minuteMs = 60_000;
    const past = new Date(Date.now() - minuteMs);
    const future = new Date(Date.now() + minuteMs);
    await assertRefused(await client({ ...batch, notAfter: past }), /it has expired/);
    await assertRefused(await client({ ...batch, notBefore: future }), /it is not valid yet/);
  });

  it('are refused if not in the table, also if a name contains another one', async () => {
    await assertRefused(
      await client({ subject: 'CN=other,O=Acme' }),
      /"CN=other,O=Acme" is not assigned/,
    );
    for (const value of [
      'x.y, DNS:batch.internal',
      'x.y", DNS:"batch.internal',
      'URI:spiffe://acme/batch',
    ]) {
      await assertRefused(
        await client({ subject: 'CN=nobody', san: [{ type: 'url', value }] }),
        /not assigned to a principal/,
      );
    }
    await assertRefused(
      await client({ subject: 'CN=batch\\,O=Acme' }),
      /not assigned to a principal/,
    );
    await assertRefused(
      await client({ subject: 'CN=batch\\0AO=Acme' }),
      /not assigned to a principal/,
    );
  });

  it('yield to a token sent with them', async () => {
    const tls = await client({ subject: 'CN=batch,O=Acme' });
    seen.length = 0;
    assert.equal((await ask(tls, { authorization: 'Bearer good' })).status, 200);
    assert.deepEqual(seen, ['token:test', 'token:test']);
    await assertRefused(tls, /Unknown/, { authorization: 'Bearer bad' });
  });

  it('are presented on every connection: sessions are not resumed', async () => {
    const tls = await client({ subject: 'CN=batch,O=Acme' });
    const connectOnce = async (session?: Buffer) => {
      const socket = connect({
        host: '127.0.0.1',
        port: secure.port,
        ...tls,
        ...(session && { session }),
      });
      socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n');
      await once(socket, 'data');
      const isReused = socket.isSessionReused();
      const latest = socket.getSession();
      socket.destroy();
      return { isReused, latest };
    };
    const { latest } = await connectOnce();
    assert.equal((await connectOnce(latest)).isReused, false);
  });

  it('expire, also on a connection that stays open', async () => {
    const tls = await client({
      subject: 'CN=batch,O=Acme',
      notAfter: new Date(Date.now() + 60_000),
    });
    const session = await openSession(secure.url, tls);
    assert.equal((await overHttp2(session, ASKING)).status, 200);
    shiftMs = 61_000;
    const late = await overHttp2(session, ASKING);
    shiftMs = 0;
    assert.equal(`${late.status} ${JSON.parse(late.text).code}`, '401 credentials_invalid');
    session.destroy();
  });

  it('follow changes of the table on open connections, and ignore an invalid table', async () => {
    const session = await openSession(secure.url, await client({ subject: 'CN=batch,O=Acme' }));
    assert.equal((await overHttp2(session, ASKING)).status, 200);
    await writeFile(table, '[{"subject":"CN=batch,O=Acme"}]');
    await until(() => log.some(({ level }) => level === 'error'));
    assert.match(String(log.at(-1)?.details.detail), /not valid at \/0\/principal/);
    assert.equal((await overHttp2(session, ASKING)).status, 200);
    await writeFile(table, '[]');
    await until(async () => (await overHttp2(session, ASKING)).status === 401);
    await writeFile(table, JSON.stringify(TABLE));
    await until(async () => (await overHttp2(session, ASKING)).status === 200);
    session.destroy();
  });
});

describe('the names in a certificate', () => {
  it('are parsed exactly, with any characters', () => {
    const cases: [text: string, names: string[]][] = [
      [
        'DNS:A.b, URI:x:y, email:A@B, IP Address:10.0.0.1',
        ['dns:a.b', 'uri:x:y', 'email:A@b', 'ip:10.0.0.1'],
      ],
      ['IP Address:2001:DB8:0:0:0:0:0:1', ['ip:[2001:db8::1]']],
      ['DNS:"a, DNS:b"', ['dns:a, dns:b']],
      ['URI:"x\\", DNS:\\"b"', ['uri:x", DNS:"b']],
      ['othername:<unsupported>, DNS:a', ['dns:a']],
      ['DirName:"CN = x, DNS:b", DNS:c', ['dns:c']],
      ['DNS:a"b, DNS:c', []],
      ['DNS:"a\\q", DNS:c', []],
      ['DNS:a,DNS:b', []],
      ['nothing', []],
    ];
    for (const [text, names] of cases) assert.deepEqual(parseAlternativeNames(text), names, text);
  });
});

describe('the certificate table', () => {
  it('is refused with the location and what is expected there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sagitta-principals-'));
    const path = join(folder, 'principals.json');
    const good = { san: 'dns:a', principal: 'a', scopes: ['admin'] };
    const cases: [content: string, expected: RegExp][] = [
      ['{', /principals\.json is not valid JSON/],
      ['{}', /not valid at \/: .*expected array/],
      [JSON.stringify([good, { ...good, scopes: ['rule'] }]), /at \/1\/scopes\/0: expected one of/],
      [
        JSON.stringify([{ ...good, san: 'host:a' }]),
        /at \/0\/san: expected one of dns, uri, email, ip/,
      ],
      [JSON.stringify([{ ...good, san: 'ip:1.2.3' }]), /at \/0\/san/],
      [
        JSON.stringify([{ ...good, subject: 'CN=a' }]),
        /at \/0: expected either a subject or a san/,
      ],
      [JSON.stringify([{ principal: 'a', scopes: [] }]), /at \/0: expected either/],
      [JSON.stringify([{ ...good, san: undefined, subject: 'batch' }]), /at \/0\/subject/],
      [JSON.stringify([{ ...good, role: 'x' }]), /Unrecognized key/],
      [JSON.stringify([good, { ...good, san: 'dns:A' }]), /at \/1: the name .* occurs twice/],
    ];
    const clock = { now: () => Date.now() };
    for (const [content, message] of cases) {
      await writeFile(path, content);
      await assert.rejects(openCertificateTable({ path, clock, logger: recordingLogger([]) }), {
        code: 'configuration_invalid',
        message,
      });
    }
    await rm(folder, { recursive: true });
    await assert.rejects(openCertificateTable({ path, clock, logger: recordingLogger([]) }), {
      message: /cannot be read: no such file/,
    });
  });
});
