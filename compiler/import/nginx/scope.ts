/** The directives that hold in a block: its own, and those that it inherits. */
import type { NginxDirective } from './nginx-parser.ts';

/** Directives that inner blocks inherit. Those of one group replace each other: a block with any of them inherits none. */
const GROUPS: { readonly [name: string]: string } = Object.fromEntries(
	[
		...['root', 'index', 'autoindex', 'add_header', 'client_max_body_size', 'gzip', 'expires', 'error_page'],
		...['proxy_set_header', 'proxy_connect_timeout', 'proxy_read_timeout', 'proxy_send_timeout', 'access_log'],
		...[
			'ssl_certificate',
			'ssl_certificate_key',
			'ssl_protocols',
			'auth_basic',
			'auth_basic_user_file',
			'fastcgi_param',
		],
	]
		.map(name => [name, name])
		.concat([
			['allow', 'access'],
			['deny', 'access'],
		]),
);

/** One level: `http`, `server` or `location`. */
export class Scope {
	readonly #parent: Scope | undefined;
	readonly #own = new Map<string, NginxDirective[]>();

	constructor(parent: Scope | undefined, directives: readonly NginxDirective[]) {
		this.#parent = parent;
		for (const one of directives) {
			const group = GROUPS[one.name];
			if (group === undefined) continue;
			const found = this.#own.get(group);
			if (found) found.push(one);
			else this.#own.set(group, [one]);
		}
	}

	/** Reports whether a directive is one of those that are inherited. */
	holds(one: NginxDirective): boolean {
		return GROUPS[one.name] !== undefined && one.block === undefined;
	}

	/** Returns the directives of a group that hold here. */
	all(group: string): readonly NginxDirective[] {
		return this.#own.get(group) ?? this.#parent?.all(group) ?? [];
	}

	/** Returns the directive of a group that holds here. */
	last(group: string): NginxDirective | undefined {
		return this.all(group).at(-1);
	}
}
