/** Returns a function that creates a value on first use and then returns the same one. */
export function lazily<T extends object | string>(create: () => T): () => T {
	let created: T | undefined;
	return () => {
		created ??= create();
		return created;
	};
}
