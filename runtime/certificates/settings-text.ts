/** Texts of settings as the process reads them: `{env.NAME}` stands for a variable of the environment. */

/** A value with every `{env.NAME}` in its texts replaced; a variable that is not set is ''. */
export function expandEnvironment<T>(value: T, environment: { readonly [name: string]: string | undefined }): T {
	if (typeof value === 'string') {
		return value.replace(/\{(?:env\.|\$)([^{}\s]+)\}/g, (_whole, name: string) => environment[name] ?? '') as T;
	}
	if (Array.isArray(value)) return value.map(one => expandEnvironment(one, environment)) as T;
	if (typeof value !== 'object' || value === null) return value;
	return Object.fromEntries(
		Object.entries(value).map(([key, inner]) => [key, expandEnvironment(inner, environment)]),
	) as T;
}
