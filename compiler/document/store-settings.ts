/** Settings of a certificate store, as in documents. */

/** A store in documents: `{"store":"file_system",…}`. */
export interface StoreSettings {
	readonly store: string;
	readonly [setting: string]: unknown;
}
