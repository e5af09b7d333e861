/**
 * Documents of before 0.2.0, read and never written. They differ in three ways:
 *
 * - a pipeline stands under `handle` instead of `pipeline`;
 * - a matcher is untagged: `{"path": ["/api/*"], "method": ["GET"]}`, all kinds of one object and-ed, a list of such
 *   objects or-ed, `not` holding one of either;
 * - a proxy's retry policy is separate fields (`retry_methods`, `retry_statuses`, `retry_connect_errors`) instead of one
 *   predicate under `retry_match`.
 */

type Fields = { [key: string]: unknown };

/** The document in today's form. What is not recognized stays as it is, for the schema to judge. */
export function upgradeDocument(document: unknown): unknown {
	if (!isFields(document)) return document;
	const upgraded: Fields = { ...document };
	if (Array.isArray(document.sites)) upgraded.sites = document.sites.map(upgradeHolder);
	if (isFields(document.routes)) {
		upgraded.routes = Object.fromEntries(
			Object.entries(document.routes).map(([name, steps]) => [name, upgradePipeline(steps)]),
		);
	}
	return upgraded;
}

/** A site, step, branch or error route. */
function upgradeHolder(value: unknown): unknown {
	if (!isFields(value)) return value;
	const upgraded: Fields = {};
	for (const [key, member] of Object.entries(value)) {
		switch (key) {
			case 'handle':
				if (Object.hasOwn(value, 'pipeline')) upgraded[key] = member;
				else upgraded.pipeline = upgradePipeline(member);
				break;
			case 'pipeline':
				upgraded[key] = upgradePipeline(member);
				break;
			case 'branches':
			case 'errors':
				upgraded[key] = Array.isArray(member) ? member.map(upgradeHolder) : member;
				break;
			case 'when':
				upgraded[key] = upgradeMatcher(member);
				break;
			case '__proto__':
				// Assigned, it would become the prototype and escape the schema.
				Object.defineProperty(upgraded, key, { value: member, enumerable: true });
				break;
			default:
				upgraded[key] = member;
		}
	}
	return value.handler === 'proxy' ? upgradeRetries(upgraded) : upgraded;
}

function upgradePipeline(steps: unknown): unknown {
	return Array.isArray(steps) ? steps.map(upgradeHolder) : steps;
}

function upgradeMatcher(value: unknown): unknown {
	if (Array.isArray(value)) {
		const of = value.map(upgradeMatcher);
		return of.length === 1 ? of[0] : { type: 'any', of };
	}
	if (!isFields(value)) return value;
	if (typeof value.type === 'string') return upgradeNested(value);
	const parts = Object.entries(value).flatMap(([kind, argument]) => upgradeKind(kind, argument));
	return parts.length === 1 ? parts[0] : { type: 'all', of: parts };
}

/** A tagged matcher may still hold untagged ones. */
function upgradeNested(matcher: Fields): Fields {
	const { of } = matcher;
	if (of === undefined) return matcher;
	return {
		...matcher,
		of: matcher.type === 'not' || !Array.isArray(of) ? upgradeMatcher(of) : of.map(upgradeMatcher),
	};
}

function upgradeKind(kind: string, argument: unknown): Fields[] {
	switch (kind) {
		case 'path':
			return [{ type: kind, patterns: argument }];
		case 'host':
			return [{ type: kind, hosts: argument }];
		case 'method':
			return [{ type: kind, methods: argument }];
		case 'remote_ip':
		case 'client_ip':
			return [{ type: kind, ranges: isFields(argument) ? argument.ranges : argument }];
		case 'header':
			return Object.entries(isFields(argument) ? argument : {}).map(([name, values]) => ({
				type: kind,
				name,
				...(values === null
					? { absent: true }
					: Array.isArray(values) && values.length === 0
						? { present: true }
						: { values }),
			}));
		case 'not':
			return [{ type: kind, of: upgradeMatcher(argument) }];
		case 'query':
			return [{ type: kind, parameters: argument }];
		default:
			return [{ type: kind, ...(isFields(argument) ? argument : { value: argument }) }];
	}
}

function upgradeRetries(step: Fields): Fields {
	const { retry_methods: methods, retry_statuses: statuses, retry_connect_errors: connect, ...rest } = step;
	// What has another type than it had then stays, for the schema to refuse.
	if (![methods, statuses].every(list => list === undefined || Array.isArray(list))) return step;
	if (connect !== undefined && typeof connect !== 'boolean') return step;
	const any: Fields[] = [];
	if (connect === true) any.push({ type: 'connect_error' });
	if (Array.isArray(statuses)) any.push({ type: 'status', codes: statuses });
	const failure = any.length > 1 ? { type: 'any', of: any } : any[0];
	const method = Array.isArray(methods) ? { type: 'method', methods } : undefined;
	const predicate = method && failure ? { type: 'all', of: [method, failure] } : (method ?? failure);
	if (rest.retry_match !== undefined) return step;
	return predicate ? { ...rest, retry_match: predicate } : rest;
}

function isFields(value: unknown): value is Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}
