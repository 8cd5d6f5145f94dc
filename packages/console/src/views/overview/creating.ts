// Whether the dialog that creates a collection is open. The command palette opens it from any view.

import { createStore } from '../../api/store.js';

export const isCreatingCollection = createStore(false);
