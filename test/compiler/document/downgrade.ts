/** Rewrites a current document in the format used before 0.2.0, in every place where the schema allows steps or matchers. */
import { documentSchema } from '../../../compiler/schema/schema.ts';

type Fields = { readonly [key: string]: unknown };

const schema = documentSchema() as Fields;
const definitions = schema.$defs as { readonly [name: string]: Fields };

/** The places in the schema where something was rewritten: `pipeline of step.group`, `matcher path`. */
export type DowngradedPlaces = Set<string>;

/** Returns the document in the old format. Adds each rewritten place of the schema to `seen`. */
export function downgradeDocument(document: unknown, seen: DowngradedPlaces): unknown {
	return downgrade(document, schema, 'document', seen);
}

/** Returns every place in the schema that contains a list of steps or a matcher. */
export function downgradablePlaces(): string[] {
	const places = new Set<string>();
	const walk = (part: Fields, place: string): void => {
		for (const [name, field] of Object.entries((part.properties ?? {}) as { [name: string]: Fields })) {
			if (field.$ref === '#/$defs/pipeline') places.add(`pipeline of ${place}`);
			else if (field.$ref === '#/$defs/matcher') places.add(`matcher under ${name}`);
			else walk(field, `${place}/${name}`);
		}
		for (const word of ['items', 'additionalProperties'] as const) {
			if (typeof part[word] === 'object') walk(part[word] as Fields, place);
		}
	};
	walk(schema, 'document');
	for (const [name, part] of Object.entries(definitions)) {
		if (name.startsWith('type.')) places.add(`matcher ${name.slice('type.'.length)}`);
		else walk(part, name);
	}
	return [...places].sort();
}

function downgrade(value: unknown, part: Fields, place: string, seen: DowngradedPlaces): unknown {
	if (part.$ref === '#/$defs/matcher') return downgradeMatcher(value as Fields, seen);
	// Retry predicates have a `type` in the old format, too.
	if (part.$ref === '#/$defs/retry') return value;
	if (typeof part.$ref === 'string') {
		const name = part.$ref.slice('#/$defs/'.length);
		return downgrade(value, definitions[name]!, name, seen);
	}
	if (Array.isArray(value)) {
		return part.items ? value.map(one => downgrade(one, part.items as Fields, place, seen)) : value;
	}
	if (typeof value !== 'object' || value === null) return value;
	const tag = (part.discriminator as { propertyName: string } | undefined)?.propertyName;
	if (tag !== undefined) {
		const name = `${tag}.${(value as Fields)[tag]}`;
		return definitions[name] ? downgrade(value, definitions[name]!, name, seen) : value;
	}
	const properties = (part.properties ?? {}) as { readonly [name: string]: Fields };
	const result: { [key: string]: unknown } = {};
	for (const [name, member] of Object.entries(value)) {
		const field = properties[name] ?? (typeof part.additionalProperties === 'object' ? part.additionalProperties : {});
		const old = downgrade(member, field as Fields, properties[name] ? `${place}/${name}` : place, seen);
		if (properties[name]?.$ref === '#/$defs/pipeline') {
			seen.add(`pipeline of ${place}`);
			result.handle = old;
		} else {
			if (properties[name]?.$ref === '#/$defs/matcher') seen.add(`matcher under ${name}`);
			result[name] = old;
		}
	}
	return downgradeRetries(result, seen);
}

/** Matcher types with a single field. In the old format, the value of this field was the matcher's whole argument. */
const SINGLE_FIELDS: { readonly [type: string]: string } = {
	path: 'patterns',
	host: 'hosts',
	method: 'methods',
	client_ip: 'ranges',
	query: 'parameters',
	vars: 'variables',
	protocol: 'protocol',
};

function downgradeMatcher(matcher: Fields, seen: DowngradedPlaces): unknown {
	const { type, '@id': id, ...fields } = matcher as Fields & { type: string };
	seen.add(`matcher ${type}`);
	const old = untagged(type, fields, seen);
	return id === undefined || Array.isArray(old) ? old : { ...(old as Fields), '@id': id };
}

function untagged(type: string, fields: Fields, seen: DowngradedPlaces): unknown {
	if (type === 'not') return { not: downgradeMatcher(fields.of as Fields, seen) };
	if (type === 'any' || type === 'all') {
		const of = (fields.of as Fields[]).map(one => downgradeMatcher(one, seen));
		if (of.length > 1 && type === 'any') return of;
		return (of.length > 1 && type === 'all' && mergeMatchers(of)) || { type, of };
	}
	if (type in SINGLE_FIELDS) return { [type]: fields[SINGLE_FIELDS[type]!] };
	const { name, field, variable, values, absent, expression, pattern, ...rest } = fields;
	switch (type) {
		case 'header':
			return { header: { [name as string]: absent === true ? null : (values ?? []) } };
		case 'header_regexp':
		case 'vars_regexp': {
			const key = (field ?? variable) as string;
			return { [type]: { [key]: name === undefined ? pattern : { name, pattern } } };
		}
		case 'expression':
			return { expression: name === undefined ? expression : { expr: expression, name } };
		case 'path_regexp':
		case 'url_pattern':
			if (name === undefined && Object.keys(rest).length === 0) return { [type]: pattern };
	}
	return { [type]: fields };
}

/**
 * Merges matcher objects of different types into one object. Returns undefined if a type occurs more than once, except for
 * consecutive header matchers of different fields.
 */
function mergeMatchers(of: readonly unknown[]): Fields | undefined {
	const all: { [kind: string]: unknown } = {};
	for (const one of of) {
		const kinds = Object.keys(one as object);
		const kind = kinds[0]!;
		if (Array.isArray(one) || kinds.length !== 1 || 'type' in (one as Fields)) return undefined;
		const argument = (one as Fields)[kind];
		const before = all[kind];
		const last = Object.keys(all).at(-1);
		if (before === undefined) all[kind] = argument;
		else if (/^header/.test(kind) && last === kind && !(Object.keys(argument as object)[0]! in (before as Fields))) {
			all[kind] = { ...(before as Fields), ...(argument as Fields) };
		} else return undefined;
	}
	return all;
}

/** Splits a retry predicate into the separate fields of the old format, if it had such fields. */
function downgradeRetries(fields: Fields, seen: DowngradedPlaces): Fields {
	const { retry_match: match, ...rest } = fields;
	if (typeof match !== 'object' || match === null) return fields;
	const parts = (predicate: Fields, type: string) =>
		predicate.type === type ? (predicate.of as Fields[]) : [predicate];
	const [first, ...others] = parts(match as Fields, 'all');
	const method = first!.type === 'method' ? first : undefined;
	const failures = method ? others : [first!, ...others];
	if (failures.length > 1) return fields;
	const old: { [name: string]: unknown } = method ? { retry_methods: method.methods } : {};
	for (const failure of failures[0] ? parts(failures[0], 'any') : []) {
		if (failure.type === 'connect_error') old.retry_connect_errors = true;
		else if (failure.type === 'status') old.retry_statuses = failure.codes;
		else return fields;
	}
	seen.add('retries');
	return { ...rest, ...old };
}
