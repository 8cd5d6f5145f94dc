// Maps client certificates to principals by a table in a file, which is reloaded when it changes. A
// certificate is accepted if a configured authority has signed it, it is valid at the time of the
// request, and the table contains it.

import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { type Principal, parseGrant, SCOPES } from '../../common/access.js';
import type { Clock } from '../../common/clock.js';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import type { CertificateTable } from './authenticator.js';
import {
  alternativeNamesOf,
  NAME_KINDS,
  readAlternativeName,
  readSubject,
  subjectOf,
} from './certificate-names.js';
import { openWatchedJson, type WatchedJson } from './watched-json.js';

const GRANTS = z
  .string()
  .refine(
    (text) => parseGrant(text) !== null,
    `expected one of ${SCOPES.join(', ')}, optionally with a pattern of collections`,
  );

const ENTRIES = z
  .array(
    z
      .strictObject({
        subject: z
          .string()
          .refine((text) => readSubject(text) !== null, 'expected a name such as "CN=batch,O=Acme"')
          .optional(),
        san: z
          .string()
          .refine(
            (text) => readAlternativeName(text) !== null,
            `expected one of ${NAME_KINDS.join(', ')}, a colon and the name, such as "dns:batch.internal"`,
          )
          .optional(),
        principal: z
          .string()
          .regex(/^[\w.@:/+-]{1,128}$/, 'expected 1 to 128 letters, digits and ._@:/+-'),
        scopes: z.array(GRANTS),
      })
      .refine(
        ({ subject, san }) => (subject === undefined) !== (san === undefined),
        'expected either a subject or a san',
      ),
  )
  // The table is kept in memory; access tokens serve larger numbers of clients.
  .max(10_000);

interface Table {
  /** By normalized name: `subject:…`, `dns:…` and so on. */
  readonly principals: ReadonlyMap<string, Principal>;
}

/** The result of looking up a connection in one version of the table. */
interface Lookup {
  readonly table: Table;
  readonly certificate: X509Certificate;
  readonly principal: Principal | null;
}

interface OpenCertificateTable extends CertificateTable {
  close(): void;
}

/** Throws `configuration_invalid`, which names the file and the location in it. */
export async function openCertificateTable(options: {
  path: string;
  clock: Clock;
  logger: Logger;
}): Promise<OpenCertificateTable> {
  const { path, clock, logger } = options;
  const file = await openWatchedJson({ what: 'certificate table', path, logger }, (json) =>
    parseTable(json, path),
  );
  const certificates = new Certificates(file, clock);
  return {
    principalOf: (socket) => certificates.principalOf(socket),
    close: () => file.close(),
  };
}

class Certificates implements CertificateTable {
  readonly #file: WatchedJson<Table>;
  readonly #clock: Clock;
  readonly #lookups = new WeakMap<Socket, Lookup>();

  constructor(file: WatchedJson<Table>, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  principalOf(socket: Socket): Principal | null {
    if (!(socket instanceof TLSSocket)) return null;
    const known = this.#lookups.get(socket);
    const lookup = known?.table === this.#file.value ? known : this.#lookUp(socket);
    if (lookup === null) return null;
    const { certificate, principal } = lookup;
    const now = this.#clock.now();
    // A connection may outlive the certificate that it was opened with.
    if (now > Date.parse(certificate.validTo)) throw invalid('The client certificate has expired.');
    if (now < Date.parse(certificate.validFrom)) {
      throw invalid('The client certificate is not valid yet.');
    }
    if (principal === null) {
      throw invalid(
        `The client certificate of "${oneLine(certificate.subject)}" is not assigned to a principal.`,
      );
    }
    return principal;
  }

  #lookUp(socket: TLSSocket): Lookup | null {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return null;
    if (!socket.authorized) {
      throw invalid(
        `The client certificate is not accepted: ${describeRefusal(socket.authorizationError)}.`,
      );
    }
    const table = this.#file.value;
    const names = [`subject:${subjectOf(certificate)}`, ...alternativeNamesOf(certificate)];
    const name = names.find((candidate) => table.principals.has(candidate));
    const principal = name === undefined ? null : table.principals.get(name)!;
    const lookup = { table, certificate, principal };
    this.#lookups.set(socket, lookup);
    return lookup;
  }
}

function parseTable(json: unknown, path: string): Table {
  const result = ENTRIES.safeParse(json);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    throw configurationError(
      `The certificate table ${path} is not valid at /${issue.path.join('/')}: ${issue.message}.`,
    );
  }
  const principals = new Map<string, Principal>();
  for (const [index, { subject, san, principal, scopes }] of result.data.entries()) {
    const name =
      subject === undefined ? readAlternativeName(san!)! : `subject:${readSubject(subject)!}`;
    if (principals.has(name)) {
      throw configurationError(
        `The certificate table ${path} is not valid at /${index}: the name "${subject ?? san}" occurs twice.`,
      );
    }
    principals.set(name, {
      id: `certificate:${principal}`,
      grants: scopes.flatMap((scope) => parseGrant(scope) ?? []),
    });
  }
  return { principals };
}

/** The reason why OpenSSL rejected the certificate, as far as it helps the client. */
function describeRefusal(found: Error | string | null): string {
  const code = found instanceof Error ? found.message : String(found);
  const reasons: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: 'it has expired',
    CERT_NOT_YET_VALID: 'it is not valid yet',
    INVALID_PURPOSE: 'it is not a client certificate',
  };
  return reasons[code] ?? 'it is not signed by a trusted authority';
}

function oneLine(subject: string): string {
  return subject.replaceAll('\n', ',');
}

const invalid = (detail: string) => new SagittaError('credentials_invalid', detail);
const configurationError = (detail: string) => new SagittaError('configuration_invalid', detail);
