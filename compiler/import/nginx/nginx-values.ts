/** Words of nginx as words of a Configfile: variables become placeholders. */

/** Thrown for a value that has no counterpart. The message is the reason that the import writes beside the directive. */
export class Untranslatable extends Error {}

const VARIABLES: { readonly [name: string]: string } = {
	...{ host: '{host}', http_host: '{hostport}', uri: '{path}', document_uri: '{path}', request_uri: '{uri}' },
	...{ args: '{query}', query_string: '{query}', scheme: '{scheme}', request_method: '{method}' },
	...{ remote_addr: '{remote_host}', remote_port: '{remote_port}', server_port: '{port}' },
	is_args_args: '{?query}',
};

/** Returns a text with placeholders. `captures` is the name of the regular expression that `$1` refers to. */
export function translated(text: string, captures?: string): string {
	const plain = text
		.replace('$is_args$args', '$is_args_args')
		.replace(/[{}]/g, (brace, at: number) => (inVariable(text, at) ? brace : `\\${brace}`));
	return plain.replace(/\$(?:\{(\w+)\}|(\w+))/g, (written, braced: string | undefined, bare: string | undefined) => {
		const name = (braced ?? bare)!;
		if (/^\d$/.test(name)) {
			if (captures === undefined) throw new Untranslatable(`\`${written}\` refers to a group of another directive`);
			return `{re.${captures}.${name}}`;
		}
		const known = VARIABLES[name];
		if (known !== undefined) return known;
		const [, kind, rest] = /^(http|arg|cookie)_(\w+)$/.exec(name) ?? [];
		if (kind === 'http') return `{header.${rest!.replaceAll('_', '-')}}`;
		if (kind === 'arg') return `{query.${rest}}`;
		if (kind === 'cookie') return `{cookie.${rest}}`;
		throw new Untranslatable(`the variable \`$${name}\` has no counterpart`);
	});
}

function inVariable(text: string, at: number): boolean {
	const open = text.lastIndexOf('${', at);
	return open !== -1 && /^\$\{\w*\}?$/.test(text.slice(open, at + 1));
}

/** Returns a size such as `20m` in our units. */
export function sizeOf(text: string): string {
	const [, count, unit] = /^(\d+)([kmg]?)$/i.exec(text) ?? [];
	if (count === undefined) throw new Untranslatable(`\`${text}\` is not a size`);
	return `${count}${{ '': 'B', k: 'KiB', m: 'MiB', g: 'GiB' }[unit!.toLowerCase()]}`;
}

/** Returns a time such as `1m 30s` or `30` in our units. */
export function durationOf(text: string): string {
	if (/^\d+$/.test(text)) return `${text}s`;
	if (/^(\d+(ms|s|m|h))+$/.test(text)) return text;
	throw new Untranslatable(`\`${text}\` is not a time that the import knows`);
}
