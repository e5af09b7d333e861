/** What one placeholder, or one family of them, is. Registered in placeholders/index.ts. */
import type { Exchange } from '../../exchange/exchange.ts';
import type { FileReader } from '../../exchange/leases.ts';

/** Reads a value of a request; undefined when the name means nothing for this request. Values are data. */
export type Resolver = (x: Exchange) => unknown;

/** Facts of the machine and process that placeholders may show; handed in, because the compiler asks no system. */
export interface HostFacts {
	readonly hostname: string;
	readonly os: string;
	readonly arch: string;
	readonly workingDirectory: string;
	/** When a stop that waits will begin, in milliseconds since 1970; 0 while none does. Left out: no stop ever waits. */
	readonly stopsAt?: () => number;
	/** An environment variable, or undefined when it is not set. */
	env(name: string): string | undefined;
}

/** What compiling a placeholder may use. */
export interface PlaceholderScope {
	readonly facts: HostFacts;
	/** Address of the client behind trusted proxies. */
	readonly clientIp: (x: Exchange) => string;
	/** Whether `map` makes a placeholder of that name. */
	isMapped(name: string): boolean;
	/** Reads files, for `{file.*}`. */
	files(): FileReader;
	/** Says that the value needs the whole request body: codegen reads it before the step runs. */
	needsBody(): void;
}

/** A placeholder or, if its name ends in `*`, a family of placeholders. */
export interface Placeholder {
	/** Full name; a final `*` stands for a parameter: `http.request.header.*`. */
	readonly name: string;
	/** One sentence, for completion and the manual. */
	readonly summary: string;
	/** Compiles for the parameter ('' without one). A string is a constant; undefined: no such name. */
	readonly compile: (parameter: string, scope: PlaceholderScope) => Resolver | string | undefined;
}

/** A placeholder without a parameter that reads the request. */
export function plain(name: string, summary: string, resolve: Resolver): Placeholder {
	return { name, summary, compile: () => resolve };
}

/** A family: the parameter, never empty and without braces, is compiled in. */
export function family(
	name: `${string}*`,
	summary: string,
	compile: (parameter: string, scope: PlaceholderScope) => Resolver | string | undefined,
): Placeholder {
	return {
		name,
		summary,
		compile: (parameter, scope) => (parameter === '' || /[{}]/.test(parameter) ? undefined : compile(parameter, scope)),
	};
}

/** Text of a placeholder's value: strings as they are, numbers in decimal, null nothing, lists as `[a b]`. */
export function valueText(value: unknown): string {
	if (typeof value === 'string') return value;
	if (value === null || value === undefined) return '';
	if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
	if (value instanceof Date) return value.toISOString();
	if (value instanceof Uint8Array)
		return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8');
	if (Array.isArray(value)) return `[${value.map(valueText).join(' ')}]`;
	return JSON.stringify(value) ?? '';
}
