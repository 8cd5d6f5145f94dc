// The files behind TLS: the server's certificate and key, and the authorities of its clients. They
// are checked when they are read, and read again when they change; files that do not fit leave in
// force what was read before. Certificates are not checked against lists of revoked ones.

import { constants, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Clock } from '../../common/clock.js';
import { SagittaError } from '../../common/errors.js';
import type { Logger } from '../../common/logger.js';
import { watchFiles } from './watched-files.js';

/** Paths of PEM files. */
export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
  /** Null where clients show no certificates. */
  readonly clientCa: string | null;
}

/** What the files hold. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer | null;
  /** The end of the first certificate of the chain. */
  readonly expiresAtMs: number;
}

export interface Tls {
  /** The latest that could be read. */
  readonly material: TlsMaterial;
  /** Whether clients are asked for a certificate. */
  readonly requestsClientCertificates: boolean;
  /** Calls back whenever other files are in force, until the function that it returns is called. */
  onReload(listener: () => void): () => void;
  close(): void;
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Throws `configuration_invalid`, which names the file and says what is wrong with it. */
export async function openTls(options: {
  paths: TlsPaths;
  clock: Clock;
  logger: Logger;
}): Promise<Tls> {
  const { paths, clock, logger } = options;
  const listeners = new Set<() => void>();
  let material = await readMaterial(paths);
  let reading: Promise<void> | undefined;
  warnOfDates(material, paths, clock, logger);

  const reload = async () => {
    const found = await readMaterial(paths);
    if (isSame(found, material)) return;
    material = found;
    for (const listener of listeners) listener();
    logger.info({ expires_at: new Date(found.expiresAtMs).toISOString() }, 'TLS files reloaded');
    warnOfDates(found, paths, clock, logger);
  };
  const watched = watchFiles(
    [paths.cert, paths.key, ...(paths.clientCa === null ? [] : [paths.clientCa])],
    () => {
      // One after the other: what was read last stays in force.
      reading = (reading ?? Promise.resolve()).then(reload).catch((error: unknown) => {
        logger.error(
          { detail: error instanceof Error ? error.message : String(error) },
          'TLS files not reloaded: those read before stay in force',
        );
      });
    },
    logger,
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
  const cert = await readNamed('TLS certificate', paths.cert);
  const key = await readNamed('TLS key', paths.key);
  const ca =
    paths.clientCa === null ? null : await readNamed('certificate authority', paths.clientCa);
  const [first] = parseCertificates(cert, 'TLS certificate', paths.cert);
  const privateKey = parseKey(key, paths.key);
  if (!first!.checkPrivateKey(privateKey)) {
    throw invalid(
      `The TLS key ${paths.key} does not belong to the first certificate of ${paths.cert}; expected the key of "${first!.subject.replaceAll('\n', ', ')}".`,
    );
  }
  if (ca !== null) parseCertificates(ca, 'certificate authority', paths.clientCa!);
  const material = { cert, key, ca, expiresAtMs: Date.parse(first!.validTo) };
  try {
    createSecureContext(secureContextOptions(material));
  } catch (error) {
    // What OpenSSL refuses although it could be parsed, such as a key that is too short.
    throw invalid(
      `The TLS certificate ${paths.cert} cannot be used: ${(error as Error).message}.`,
      error,
    );
  }
  return material;
}

/** For `setSecureContext`, which forgets what it is not told. */
export function secureContextOptions({ cert, key, ca }: TlsMaterial): SecureContextOptions {
  const server = { cert, key, minVersion: 'TLSv1.3' } as const;
  // A connection that is resumed shows no certificate again; each shall, under the present
  // authorities.
  return ca === null ? server : { ...server, ca, secureOptions: constants.SSL_OP_NO_TICKET };
}

async function readNamed(what: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw invalid(`The ${what} ${path} cannot be read: ${describeFileError(error)}.`, error);
  }
}

/** Why a file cannot be read, in words. */
export function describeFileError(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'this user may not read it',
    EISDIR: 'it is a folder',
  };
  return reasons[code ?? ''] ?? message;
}

/** At least one. */
function parseCertificates(pem: Buffer, what: string, path: string): X509Certificate[] {
  const blocks = pem.toString('latin1').match(PEM_CERTIFICATE);
  if (blocks === null) {
    throw invalid(
      `The ${what} ${path} holds no certificate; expected PEM, "-----BEGIN CERTIFICATE-----".`,
    );
  }
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch (error) {
      throw invalid(
        `The ${what} ${path} is damaged: certificate ${index + 1} of ${blocks.length} cannot be parsed.`,
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
        ? `The TLS key ${path} is encrypted; expected a key without a passphrase, in a file that only this user may read.`
        : `The TLS key ${path} cannot be parsed; expected PEM, "-----BEGIN PRIVATE KEY-----".`,
      error,
    );
  }
}

/** A server that refuses to start would serve its clients less than one that they can complain of. */
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
