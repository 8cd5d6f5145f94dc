// Shows who is signed in and their grants, or a button to sign in. Empty if the server requires no credentials.

import { Popover, PopoverDisclosure, PopoverDismiss, PopoverProvider } from '@ariakit/react';
import type { PrincipalRecord } from '@sagitta/client';
import { CircleUser } from 'lucide-react';
import { usePrincipal } from '../api/queries.js';
import { session, signInReason, signOut } from '../api/session.js';
import { useStore } from '../api/store.js';
import { Button } from '../ui/button.js';
import { formatTime } from '../ui/format.js';
import styles from './session-menu.module.css';

export function SessionMenu() {
  const { credential } = useStore(session);
  const { data: principal } = usePrincipal();
  if (credential !== undefined) return <SignedIn principal={principal} />;
  if (principal !== undefined && !principal.credentials_required) return null;
  return (
    <Button kind="quiet" onClick={() => signInReason.set('missing')}>
      Sign in
    </Button>
  );
}

function SignedIn({ principal }: { readonly principal: PrincipalRecord | undefined }) {
  const name = principal && nameOf(principal);
  const label = name === undefined ? 'Signed in' : `Signed in as ${name}`;
  return (
    <PopoverProvider placement="bottom-end">
      <PopoverDisclosure className={styles.button} aria-label={label} title={label}>
        <CircleUser size={18} aria-hidden />
      </PopoverDisclosure>
      <Popover gutter={6} className={styles.menu} aria-label="Session">
        <p className={styles.name}>{name ?? label}</p>
        {principal !== undefined && <Grants principal={principal} />}
        <PopoverDismiss className={styles.item} onClick={() => signInReason.set('missing')}>
          Use another credential
        </PopoverDismiss>
        <PopoverDismiss className={styles.item} onClick={signOut}>
          Sign out
        </PopoverDismiss>
      </Popover>
    </PopoverProvider>
  );
}

function Grants({ principal: { grants, key } }: { readonly principal: PrincipalRecord }) {
  return (
    <>
      <ul className={styles.grants}>
        {grants.map(({ scope, collections }) => (
          <li key={`${scope}:${collections}`}>
            <code>{scope}</code>
            {collections !== '*' && <> on {collections}</>}
          </li>
        ))}
      </ul>
      {key?.expires_at != null && (
        <p className={styles.note}>expires {formatTime(key.expires_at)}</p>
      )}
    </>
  );
}

function nameOf({ id, key }: PrincipalRecord): string {
  return key === null ? id : `${key.owner} (key ${key.id})`;
}
