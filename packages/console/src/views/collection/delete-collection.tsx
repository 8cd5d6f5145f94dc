// Deletes a collection after its id has been typed.

import { useLocation } from 'wouter';
import { queryClient } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { ConfirmByName } from '../../ui/dialog.js';
import { pluralize } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import type { CollectionDialogProps } from '../collection-view-props.js';

export function DeleteCollection({ collection, isOpen, onClose }: CollectionDialogProps) {
  const [, navigate] = useLocation();
  const { id } = collection;
  const remove = async () => {
    const { vector_count: count } = await session.get().client.collections.delete(id);
    navigate('/');
    queryClient.removeQueries({ queryKey: ['collection', id] });
    void queryClient.invalidateQueries({ queryKey: ['collections'] });
    notify(`Deleted ${id} with ${pluralize(count, 'vector')}.`);
  };
  return (
    <ConfirmByName
      title="Delete the collection"
      name={id}
      action="Delete"
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={remove}
    >
      This deletes {pluralize(collection.vector_count, 'vector')} with their metadata. Only a backup
      can restore them.
    </ConfirmByName>
  );
}
