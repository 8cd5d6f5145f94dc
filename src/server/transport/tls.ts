// The TLS files: the server's certificate and key, and the authorities of client certificates. They are validated
// when they are read and reloaded when they change. If the new files are invalid, the previous ones stay in use.
// Certificate revocation lists are not checked.

import { constants, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Clock } from '../../common/clock.js';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { reloadOnChange } from './watched-files.js';

/** Paths of PEM files. */
interface TlsPaths {
  readonly cert: string;
  readonly key: string;
  /** Null without client certificates. */
  readonly clientCa: string | null;
}

/** The contents of the files. */
interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer | null;
  /** When the first certificate of the chain expires. */
  readonly expiresAtMs: number;
}

export interface Tls {
  /** The last valid contents. */
  readonly material: TlsMaterial;
  /** Whether the server requests client certificates. */
  readonly requestsClientCertificates: boolean;
  /** Calls `listener` whenever new contents are in use. Returns a function that unsubscribes. */
  onReload(listener: () => void): () => void;
  close(): void;
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Throws `configuration_invalid`, which names the file and the problem. */
export async function openTls(options: {
  paths: TlsPaths;
  clock: Clock;
  logger: Logger;
}): Promise<Tls> {
  const { paths, clock, logger } = options;
  const listeners = new Set<() => void>();
  let material = await readMaterial(paths);

  warnOfDates(material, paths, clock, logger);

  const reload = async () => {
    const found = await readMaterial(paths);
    if (isSame(found, material)) return;
    material = found;
    for (const listener of listeners) listener();
    logger.info({ expires_at: new Date(found.expiresAtMs).toISOString() }, 'TLS files reloaded');
    warnOfDates(found, paths, clock, logger);
  };
  const watched = reloadOnChange(
    [paths.cert, paths.key, ...(paths.clientCa === null ? [] : [paths.clientCa])],
    reload,
    { logger, failureMessage: 'TLS files not reloaded: the previous files stay in use' },
  );
  return {
    get material() {
      return material;
    },
    requestsClientCertificates: paths.clientCa !== null,
    onReload(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => watched.close(),
  };
}

async function readMaterial(paths: TlsPaths): Promise<TlsMaterial> {
  const cert = await readConfiguredFile('TLS certificate', paths.cert);
  const key = await readConfiguredFile('TLS key', paths.key);
  const ca =
    paths.clientCa === null
      ? null
      : await readConfiguredFile('certificate authority', paths.clientCa);
  const [first] = parseCertificates(cert, 'TLS certificate', paths.cert);
  const privateKey = parseKey(key, paths.key);
  if (!first!.checkPrivateKey(privateKey)) {
    throw invalid(
      `The TLS key ${paths.key} does not match the first certificate in ${paths.cert}; expected the key of "${first!.subject.replaceAll('\n', ', ')}".`,
    );
  }
  if (ca !== null) parseCertificates(ca, 'certificate authority', paths.clientCa!);
  const material = { cert, key, ca, expiresAtMs: Date.parse(first!.validTo) };
  try {
    createSecureContext(secureContextOptions(material));
  } catch (error) {
    // OpenSSL rejects some files that can be parsed, such as keys that are too short.
    throw invalid(
      `The TLS certificate ${paths.cert} cannot be used: ${(error as Error).message}.`,
      error,
    );
  }
  return material;
}

/** All options of the secure context: `setSecureContext` resets those that are omitted. */
export function secureContextOptions({ cert, key, ca }: TlsMaterial): SecureContextOptions {
  const server = { cert, key, minVersion: 'TLSv1.3' } as const;
  // A resumed session would present no certificate; each connection must, to be checked against the
  // current authorities.
  return ca === null ? server : { ...server, ca, secureOptions: constants.SSL_OP_NO_TICKET };
}

/** Reads a file that the configuration names; `what` describes it in errors. Throws `configuration_invalid`. */
export async function readConfiguredFile(what: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw invalid(`The ${what} ${path} cannot be read: ${describeFileError(error)}.`, error);
  }
}

function describeFileError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'no such file',
    EACCES: 'permission denied',
    EISDIR: 'it is a directory',
  };
  return reasons[code ?? ''] ?? message;
}

/** The certificates of a PEM file, of which there is at least one. Throws `configuration_invalid`. */
function parseCertificates(pem: Buffer, what: string, path: string): X509Certificate[] {
  const blocks = pem.toString('latin1').match(PEM_CERTIFICATE);
  if (blocks === null) {
    throw invalid(
      `The ${what} ${path} contains no certificate; expected PEM, "-----BEGIN CERTIFICATE-----".`,
    );
  }
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch (error) {
      throw invalid(
        `The ${what} ${path} is invalid: certificate ${index + 1} of ${blocks.length} cannot be parsed.`,
        error,
      );
    }
  });
}

function parseKey(pem: Buffer, path: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    const isEncrypted = pem.includes('ENCRYPTED');
    throw invalid(
      isEncrypted
        ? `The TLS key ${path} is encrypted; expected a key without a passphrase, in a file that only this user can read.`
        : `The TLS key ${path} cannot be parsed; expected PEM, "-----BEGIN PRIVATE KEY-----".`,
      error,
    );
  }
}

/** Only warns, since a server with an expired certificate is more useful than one that does not start. */
function warnOfDates(material: TlsMaterial, paths: TlsPaths, clock: Clock, logger: Logger): void {
  const [first] = parseCertificates(material.cert, 'TLS certificate', paths.cert);
  const details = { path: paths.cert, valid_from: first!.validFrom, valid_to: first!.validTo };
  if (clock.now() > material.expiresAtMs) logger.warn(details, 'the TLS certificate has expired');
  else if (clock.now() < Date.parse(first!.validFrom)) {
    logger.warn(details, 'the TLS certificate is not valid yet');
  }
}

function isSame(left: TlsMaterial, right: TlsMaterial): boolean {
  return (
    left.cert.equals(right.cert) &&
    left.key.equals(right.key) &&
    (left.ca === null || right.ca === null ? left.ca === right.ca : left.ca.equals(right.ca))
  );
}

const invalid = (detail: string, cause?: unknown) =>
  new SagittaError('configuration_invalid', detail, { cause });
