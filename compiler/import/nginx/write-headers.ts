/** Writes header fields, compression and the maximum size of request bodies, which are the same for all kinds of content. */
import { type ConfigfileWriter, quoted, word } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { secondsOf, sizeOf, translated, type Variables } from './nginx-values.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { isCached } from './write-cache.ts';
import { orKeep } from './write-rewrites.ts';

/** Matches the statuses of responses to which nginx adds fields without `always`. */
const SUCCESSES = 'match status 200 201 204 206 301 302 303 304 307 308';

/** Writes `add_header` and `expires`. With `onError`, writes only the fields that error responses get as well. */
export function writeFields(scope: Scope, out: ConfigfileWriter, variables: Variables, onError = false): void {
	for (const directive of scope.all('add_header')) {
		const [field = '', value = '', always] = directive.args;
		if (onError && always !== 'always') continue;
		// A field without a value is not sent. A location uses this to turn inherited fields off.
		const isNeverSent = value === '' || (value === '$upstream_cache_status' && !isCached(scope));
		if (isNeverSent) out.count(directive);
		else
			orKeep(directive, out, () => {
				const text = translated(value, variables);
				const edit = `${word(`+${field}`)} ${quoted(text)}`;
				const write = (): void =>
					out.block('header', () => {
						out.line(edit);
						if (!onError) out.line(always === 'always' ? 'defer' : SUCCESSES);
					});
				// nginx sends no field whose value is empty.
				const [placeholders] = /^(?:\{[^{}]+\})+$/.exec(text) ?? [];
				const isSetLater = value.includes('$upstream_');
				if (placeholders === undefined || isSetLater) write();
				else {
					const emptyTests = placeholders.match(/\{[^{}]+\}/g)!.map(placeholder => `vars ${placeholder} ""`);
					const isSingle = emptyTests.length === 1;
					out.block(isSingle ? `when not ${emptyTests[0]}` : `when not ( ${emptyTests.join(' and ')} )`, write);
				}
			});
	}
	const expires = onError ? undefined : scope.last('expires');
	if (expires) orKeep(expires, out, () => writeExpires(expires.args, out));
}

/** Reports whether a scope adds fields to errors. */
export function hasErrorFields(scope: Scope): boolean {
	return scope.all('add_header').some(({ args }) => args[2] === 'always' && args[1] !== '');
}

function writeExpires(args: readonly string[], out: ConfigfileWriter): void {
	const [value = ''] = args;
	if (value === 'off') return;
	if (args.length > 1) throw new Untranslatable('only a duration, `max`, `epoch` and `off` are translated');
	const isPast = value === 'epoch' || value.startsWith('-');
	const age = value === 'max' ? 315360000 : isPast ? 0 : secondsOf(value);
	out.block('header', () => {
		out.line(`+Cache-Control ${isPast ? 'no-cache' : `max-age=${age}`}`);
		out.line(SUCCESSES);
	});
}

/** Writes `gzip` and its settings as `encode`. */
export function writeCompression(scope: Scope, out: ConfigfileWriter): void {
	const gzip = scope.last('gzip');
	if (!gzip) return;
	out.count(gzip);
	if (gzip.args[0] !== 'on') return;
	const types = scope.last('gzip_types');
	const level = scope.last('gzip_comp_level');
	const minLength = scope.last('gzip_min_length');
	const lines: string[] = [`gzip${level ? ` ${level.args[0]}` : ''}`];
	if (minLength) lines.push(`minimum_length ${minLength.args[0]}`);
	for (const directive of [types, level, minLength]) if (directive) out.count(directive);
	if (types?.args.includes('*')) lines.push('match header Content-Type *');
	else {
		lines.push('match {');
		for (const type of new Set(['text/html', ...(types?.args ?? [])]))
			lines.push(`\theader Content-Type ${word(`${type}*`)}`);
		lines.push('}');
	}
	out.block('encode', () => {
		for (const line of lines) out.line(line);
	});
}

/** Writes the maximum size of request bodies. The default of nginx is 1 MiB. */
export function writeBodyLimit(scope: Scope, out: ConfigfileWriter): void {
	const size = scope.last('client_max_body_size');
	const write = (): void => {
		const limit = sizeOf(size?.args[0] ?? '1m');
		if (size?.args[0] !== '0') out.block('request_body', () => out.line(`max_size ${limit}`));
	};
	if (size) orKeep(size, out, write);
	else write();
}

/** Returns the media type of the texts that `return` sends; undefined for text/plain. */
export function textTypeOf(scope: Scope, out: ConfigfileWriter): string | undefined {
	const type: NginxDirective | undefined = scope.last('default_type');
	if (!type) return undefined;
	out.count(type);
	return type.args[0] === 'text/plain' ? undefined : type.args[0];
}
