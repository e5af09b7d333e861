/**
 * Upgrades documents from before 0.2.0, which are accepted but no longer written. They differ from current documents in three ways:
 *
 * - The steps of a site, branch, error route or response rule are under `handle` instead of `pipeline`.
 * - A matcher has no tag, which is the field `type`: `{"path": ["/api/*"], "method": ["GET"]}`. The kinds in one object are
 * combined with AND, and the objects in a list with OR. `not` contains an object or a list.
 * - The retry policy of a proxy or pool has separate fields (`retry_methods`, `retry_statuses`, `retry_connect_errors`) instead of
 * one predicate under `retry_match`.
 */

type Fields = { [key: string]: unknown };

/** Returns a document in the current form. Parts that are not recognized are kept, so that the schema rejects them. */
export function upgradeDocument(document: unknown): unknown {
	if (!isFields(document)) return document;
	const upgradedDocument: Fields = { ...document };
	if (Array.isArray(document.sites)) upgradedDocument.sites = document.sites.map(upgradeObject);
	if (isFields(document.routes)) {
		upgradedDocument.routes = Object.fromEntries(
			Object.entries(document.routes).map(([name, steps]) => [name, upgradePipeline(steps)]),
		);
	}
	if (isFields(document.upstreams)) {
		upgradedDocument.upstreams = Object.fromEntries(
			Object.entries(document.upstreams).map(([name, pool]) => [name, upgradeRetries(pool)]),
		);
	}
	return upgradedDocument;
}

/** Upgrades a site, step, branch, error route or response rule. */
function upgradeObject(value: unknown): unknown {
	if (!isFields(value)) return value;
	const upgradedFields: Fields = {};
	for (const [key, member] of Object.entries(value)) {
		switch (key) {
			case 'handle':
				if (Object.hasOwn(value, 'pipeline')) upgradedFields[key] = member;
				else upgradedFields.pipeline = upgradePipeline(member);
				break;
			case 'pipeline':
				upgradedFields[key] = upgradePipeline(member);
				break;
			case 'branches':
			case 'errors':
			case 'responses':
			case 'rules':
			case 'zones':
				upgradedFields[key] = Array.isArray(member) ? member.map(upgradeObject) : member;
				break;
			case 'when':
			case 'bypass':
			case 'sample':
				upgradedFields[key] = upgradeMatcher(member);
				break;
			case 'upstreams':
				upgradedFields[key] = upgradeRetries(member);
				break;
			case '__proto__':
				// An assignment to `__proto__` would set the prototype, so that the schema would not see the key.
				Object.defineProperty(upgradedFields, key, { value: member, enumerable: true });
				break;
			default:
				upgradedFields[key] = member;
		}
	}
	return value.handler === 'proxy' ? upgradeRetries(upgradedFields) : upgradedFields;
}

function upgradePipeline(steps: unknown): unknown {
	return Array.isArray(steps) ? steps.map(upgradeObject) : steps;
}

function upgradeMatcher(value: unknown): unknown {
	if (Array.isArray(value)) {
		const of = value.map(upgradeMatcher);
		return of.length === 1 ? of[0] : { type: 'any', of };
	}
	if (!isFields(value)) return value;
	if (typeof value.type === 'string') return upgradeOperands(value);
	const { '@id': id, ...argumentsByKind } = value;
	const parts = Object.entries(argumentsByKind).flatMap(([kind, argument]) => upgradeUntaggedMatcher(kind, argument));
	const upgraded = parts.length === 1 ? parts[0]! : { type: 'all', of: parts };
	return id === undefined ? upgraded : { ...upgraded, '@id': id };
}

/** Upgrades the operands of a matcher with a tag, because they may lack tags. */
function upgradeOperands(matcher: Fields): Fields {
	const { of } = matcher;
	if (of === undefined) return matcher;
	return {
		...matcher,
		of: matcher.type === 'not' || !Array.isArray(of) ? upgradeMatcher(of) : of.map(upgradeMatcher),
	};
}

function upgradeUntaggedMatcher(kind: string, argument: unknown): Fields[] {
	switch (kind) {
		case 'path':
			return [{ type: kind, patterns: argument }];
		case 'host':
			return [{ type: kind, hosts: argument }];
		case 'method':
			return [{ type: kind, methods: argument }];
		case 'remote_ip':
		case 'client_ip':
			return [{ type: kind, ...(isFields(argument) ? argument : { ranges: argument }) }];
		case 'header':
			return matchersOfEntries(kind, argument, (name, values) => ({ name, ...headerRule(values) }));
		case 'header_regexp':
			return matchersOfEntries(kind, argument, (field, regexp) => ({ field, ...regexpFields(regexp) }));
		case 'vars_regexp':
			return matchersOfEntries(kind, argument, (variable, regexp) => ({ variable, ...regexpFields(regexp) }));
		case 'path_regexp':
		case 'url_pattern':
			return [{ type: kind, ...regexpFields(argument) }];
		case 'vars':
			return [{ type: kind, variables: argument }];
		case 'protocol':
			return [{ type: kind, protocol: argument }];
		case 'expression': {
			if (!isFields(argument)) return [{ type: kind, expression: argument }];
			const { expr, ...fields } = argument;
			return [{ type: kind, ...(expr === undefined ? {} : { expression: expr }), ...fields }];
		}
		case 'not':
			return [{ type: kind, of: upgradeMatcher(argument) }];
		case 'query':
			return [{ type: kind, parameters: argument }];
		default:
			return [{ type: kind, ...(isFields(argument) ? argument : { value: argument }) }];
	}
}

/**
 * Returns a matcher for each entry of a map. Any other value is kept, so that the schema rejects it. If it were dropped, the
 * condition would match everything.
 */
function matchersOfEntries(
	kind: string,
	argument: unknown,
	fieldsOf: (name: string, value: unknown) => Fields,
): Fields[] {
	if (!isFields(argument)) return [{ type: kind, value: argument }];
	return Object.entries(argument).map(([name, value]) => ({ type: kind, ...fieldsOf(name, value) }));
}

function headerRule(values: unknown): Fields {
	if (values === null) return { absent: true };
	return Array.isArray(values) && values.length === 0 ? { present: true } : { values };
}

/**
 * Returns the fields of a regular expression, which is either a pattern or an object with a pattern and a name for its captures.
 */
function regexpFields(regexp: unknown): Fields {
	return isFields(regexp) ? regexp : { pattern: regexp };
}

/** Upgrades the retry policy of a proxy or pool. */
function upgradeRetries(step: unknown): unknown {
	if (!isFields(step)) return step;
	const {
		retry_methods: methods,
		retry_statuses: statuses,
		retry_connect_errors: connectErrors,
		...otherFields
	} = step;
	// Values of another type are kept, so that the schema rejects them.
	if (![methods, statuses].every(list => list === undefined || Array.isArray(list))) return step;
	if (connectErrors !== undefined && typeof connectErrors !== 'boolean') return step;
	const failures: Fields[] = [];
	if (connectErrors === true) failures.push({ type: 'connect_error' });
	if (Array.isArray(statuses)) failures.push({ type: 'status', codes: statuses });
	const anyFailure = failures.length > 1 ? { type: 'any', of: failures } : failures[0];
	const methodMatcher = Array.isArray(methods) ? { type: 'method', methods } : undefined;
	const predicate =
		methodMatcher && anyFailure ? { type: 'all', of: [methodMatcher, anyFailure] } : (methodMatcher ?? anyFailure);
	if (otherFields.retry_match !== undefined) return step;
	return predicate ? { ...otherFields, retry_match: predicate } : otherFields;
}

function isFields(value: unknown): value is Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}
