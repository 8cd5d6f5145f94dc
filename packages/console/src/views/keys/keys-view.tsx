// Lists, creates, rotates and revokes API keys.

import type { ApiKeyRecord, ApiKeyWithSecret, PrincipalRecord } from '@sagitta/client';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { administrationEndsAtMs } from '../../../../../src/common/access.js';
import { useApi } from '../../api/queries.js';
import { Button } from '../../ui/button.js';
import { formatTime } from '../../ui/format.js';
import { PageLayout, Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { AdminOnly } from '../admin-only.js';
import { CreateKeyDialog } from './create-key.js';
import { RevokeDialog, RotateDialog } from './key-dialogs.js';
import { KeyTable } from './key-table.js';
import styles from './keys.module.css';
import { SecretDialog } from './secret-dialog.js';

/** The open dialog. */
type Task =
  | { readonly kind: 'create' }
  | { readonly kind: 'rotate' | 'revoke'; readonly key: ApiKeyRecord }
  | { readonly kind: 'secret'; readonly key: ApiKeyWithSecret };

export default function KeysView() {
  return <AdminOnly title="API keys">{(principal) => <Keys principal={principal} />}</AdminOnly>;
}

function Keys({ principal }: { readonly principal: PrincipalRecord }) {
  const [task, setTask] = useState<Task>();
  const {
    data: keys,
    error,
    refetch,
  } = useApi(['keys'], (client, signal) => client.keys.list({ signal }), {
    refetchInterval: 15_000,
  });
  const close = () => setTask(undefined);
  const showSecret = (key: ApiKeyWithSecret) => setTask({ kind: 'secret', key });
  return (
    <PageLayout
      title="API keys"
      subtitle="The server stores only a digest of each key."
      actions={
        <Button kind="primary" icon={Plus} onClick={() => setTask({ kind: 'create' })}>
          New key
        </Button>
      }
    >
      {!principal.credentials_required && <OpenServer />}
      {keys !== undefined && <LastAdministrator keys={keys} />}
      {keys === undefined && error === null && <Loading label="Loading the keys" />}
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {keys?.length === 0 && (
        <Panel>
          <Empty title="No API keys" />
        </Panel>
      )}
      {keys !== undefined && keys.length > 0 && (
        <KeyTable
          keys={keys}
          ownId={principal.key?.id}
          onRotate={(key) => setTask({ kind: 'rotate', key })}
          onRevoke={(key) => setTask({ kind: 'revoke', key })}
        />
      )}
      <CreateKeyDialog
        isOpen={task?.kind === 'create'}
        isFirst={!principal.credentials_required}
        onClose={close}
        onCreated={showSecret}
      />
      <RotateDialog
        record={task?.kind === 'rotate' ? task.key : undefined}
        onClose={close}
        onRotated={showSecret}
      />
      <RevokeDialog record={task?.kind === 'revoke' ? task.key : undefined} onClose={close} />
      <SecretDialog record={task?.kind === 'secret' ? task.key : undefined} onClose={close} />
    </PageLayout>
  );
}

function OpenServer() {
  return (
    <p className={styles.warning}>
      This server is open: anyone who can reach it has full access. Create a key to require
      authentication.
    </p>
  );
}

/** Warns when the last key that can create others will expire. */
function LastAdministrator({ keys }: { readonly keys: readonly ApiKeyRecord[] }) {
  const endsAtMs = administrationEndsAtMs(keys, Date.now());
  if (!Number.isFinite(endsAtMs)) return null;
  return (
    <p className={styles.warning}>
      The last key with the scope admin expires on {formatTime(new Date(endsAtMs).toISOString())}.
      Create another one before then, or no key will be able to manage the server.
    </p>
  );
}
