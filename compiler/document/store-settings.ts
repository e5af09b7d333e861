/** Settings of a certificate store, as in documents. */

/** A certificate store, such as `{"store":"file_system",…}`. */
export interface StoreSettings {
	readonly store: string;
	readonly [setting: string]: unknown;
}
