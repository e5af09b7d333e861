/** Replaces references to environment variables in settings. */

/** Replaces `{env.NAME}` in all strings of a value with environment variables. Unset variables are empty. */
export function expandEnvironment<T>(value: T, environment: { readonly [name: string]: string | undefined }): T {
	if (typeof value === 'string') {
		return value.replace(/\{(?:env\.|\$)([^{}\s]+)\}/g, (_reference, name: string) => environment[name] ?? '') as T;
	}
	if (Array.isArray(value)) return value.map(element => expandEnvironment(element, environment)) as T;
	if (typeof value !== 'object' || value === null) return value;
	return Object.fromEntries(
		Object.entries(value).map(([key, inner]) => [key, expandEnvironment(inner, environment)]),
	) as T;
}
