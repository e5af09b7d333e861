/** Finds the directives that apply in a block: its own and the inherited ones. */
import type { NginxDirective } from './nginx-parser.ts';

/**
 * Directives that inner blocks inherit, besides those that match `INHERITED_NAME_PATTERN`. A block with a directive of its own does
 * not inherit directives of the same name.
 */
const INHERITED_DIRECTIVES: ReadonlySet<string> = new Set([
	...['root', 'index', 'autoindex', 'autoindex_format', 'autoindex_exact_size', 'autoindex_localtime', 'add_header'],
	...['client_max_body_size', 'gzip', 'expires', 'error_page', 'access_log', 'auth_basic', 'auth_basic_user_file'],
	...[
		'auth_request',
		'auth_request_set',
		'satisfy',
		'limit_req',
		'limit_req_status',
		'limit_req_dry_run',
		'limit_conn',
	],
	...[
		'limit_conn_status',
		'limit_conn_dry_run',
		'default_type',
		'types',
		'sub_filter',
		'sub_filter_once',
		'sub_filter_types',
	],
	...['sub_filter_last_modified', 'mirror', 'mirror_request_body', 'limit_rate', 'limit_rate_after', 'etag', 'charset'],
	...['recursive_error_pages', 'real_ip_header', 'real_ip_recursive', 'set_real_ip_from', 'disable_symlinks'],
]);
const INHERITED_NAME_PATTERN = /^(?:proxy|fastcgi|grpc|gzip|ssl)_(?!pass$)/;

function inheritanceGroup({ name, block }: NginxDirective): string | undefined {
	if (block !== undefined && name !== 'types') return undefined;
	if (name === 'allow' || name === 'deny') return 'access';
	return INHERITED_DIRECTIVES.has(name) || INHERITED_NAME_PATTERN.test(name) ? name : undefined;
}

/** One level of scope: `http`, `server`, `location`, or an `if` in a location. */
export class Scope {
	readonly #parent: Scope | undefined;
	readonly #ownDirectives = new Map<string, NginxDirective[]>();

	constructor(parent: Scope | undefined, directives: readonly NginxDirective[]) {
		this.#parent = parent;
		for (const directive of directives) {
			const group = inheritanceGroup(directive);
			if (group === undefined) continue;
			const groupDirectives = this.#ownDirectives.get(group);
			if (groupDirectives) groupDirectives.push(directive);
			else this.#ownDirectives.set(group, [directive]);
		}
	}

	/** Reports whether inner blocks inherit a directive. */
	isInherited(directive: NginxDirective): boolean {
		return inheritanceGroup(directive) !== undefined;
	}

	/**
	 * Returns the directives of a group that apply in this scope. A group is a directive's name, or `access` for `allow` and
	 * `deny`.
	 */
	directivesIn(group: string): readonly NginxDirective[] {
		return this.#ownDirectives.get(group) ?? this.#parent?.directivesIn(group) ?? [];
	}

	/** Returns the last directive of a group that applies in this scope. */
	lastDirective(group: string): NginxDirective | undefined {
		return this.directivesIn(group).at(-1);
	}

	/** Returns the first argument of the last directive of a group that applies in this scope; undefined if there is none. */
	lastArgument(group: string): string | undefined {
		return this.lastDirective(group)?.args[0];
	}
}
