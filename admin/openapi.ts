/** `GET /openapi.json` → 200, the description of the Admin API (OpenAPI 3.1), derived from the endpoints. */
import type { AdminEndpoint, AdminOperation, JsonSchema } from './endpoint.ts';
import { answerJson } from './endpoint.ts';
import { ADMIN_ERRORS, type AdminErrorCode } from './errors.ts';

/** Errors that any endpoint may answer with. */
const COMMON_ERROR_CODES: readonly AdminErrorCode[] = [
	...(['unauthorized', 'client_not_allowed', 'host_not_allowed', 'origin_not_allowed', 'internal'] as const),
];

const DIAGNOSTIC_SCHEMA: JsonSchema = {
	type: 'object',
	description: 'A compiler message about a configuration.',
	properties: {
		code: { type: 'string', description: 'Stable, such as `redirect/unknown-status`.' },
		severity: { enum: ['error', 'warning'] },
		message: { type: 'string' },
		file: { type: 'string' },
		line: { type: 'integer', minimum: 1 },
		column: { type: 'integer', minimum: 1 },
		end_line: { type: 'integer', minimum: 1 },
		end_column: { type: 'integer', minimum: 1 },
		pointer: { type: 'string', description: 'JSON pointer into the document.' },
		hint: { type: 'string' },
		fixes: {
			type: 'array',
			items: {
				type: 'object',
				required: ['safety', 'edits'],
				properties: {
					safety: { enum: ['safe', 'unsafe'], description: '`unsafe`: a person has to confirm it.' },
					edits: { type: 'array', items: { type: 'object' }, description: 'All of them are made together.' },
				},
			},
			description: 'Ways to fix the problem; any one of them suffices.',
		},
		text: { type: 'string', description: 'The rendered message, with a source excerpt and a caret.' },
	},
	required: ['code', 'severity', 'message', 'text'],
};

const RESTART_REASON_SCHEMA: JsonSchema = {
	type: 'object',
	properties: { code: { type: 'string' }, subject: { type: 'string' }, message: { type: 'string' } },
	required: ['code', 'subject', 'message'],
	additionalProperties: false,
};

const ERROR_SCHEMA: JsonSchema = {
	type: 'object',
	properties: {
		error: {
			type: 'object',
			properties: {
				code: { enum: Object.keys(ADMIN_ERRORS) },
				message: { type: 'string', description: 'One sentence.' },
				diagnostics: { type: 'array', items: { $ref: '#/components/schemas/Diagnostic' } },
				reasons: { type: 'array', items: { $ref: '#/components/schemas/RestartReason' } },
				nearest: { type: 'string', description: 'JSON pointer of the nearest parent that exists.' },
				output: {
					type: 'string',
					description:
						'The last lines, at most 20 and 2,000 characters, that the new program wrote to standard error before it received the configuration.',
				},
			},
			required: ['code', 'message', 'diagnostics'],
			additionalProperties: false,
		},
	},
	required: ['error'],
	additionalProperties: false,
};

/** Returns the OpenAPI description of endpoints as a plain JSON value. */
export function describeApi(endpoints: readonly AdminEndpoint[]): { readonly [key: string]: unknown } {
	return {
		openapi: '3.1.0',
		info: {
			title: 'Admin API of svc',
			version: '1',
			description:
				'Reads and changes the running configuration, reports liveness and readiness, exports metrics, and stops the process.',
		},
		servers: [{ url: 'http://127.0.0.1:2019' }],
		security: [{ token: [] }, {}],
		paths: Object.fromEntries(
			endpoints.flatMap(endpoint =>
				Object.entries(endpoint.describedPaths ?? { [endpoint.path]: {} }).map(([path, parameters]) => [
					path,
					{
						...(Object.keys(parameters).length > 0 && { parameters: Object.entries(parameters).map(pathParameter) }),
						...Object.fromEntries(
							Object.entries(endpoint.operationsByMethod).map(([method, operation]) => [
								method.toLowerCase(),
								describeOperation(operation),
							]),
						),
					},
				]),
			),
		),
		components: {
			securitySchemes: {
				token: { type: 'http', scheme: 'bearer', description: 'The token configured in the option `admin`, if any.' },
			},
			schemas: { Diagnostic: DIAGNOSTIC_SCHEMA, RestartReason: RESTART_REASON_SCHEMA, Error: ERROR_SCHEMA },
		},
	};
}

function pathParameter([name, description]: [string, string]) {
	return { name, in: 'path', required: true, description, schema: { type: 'string' } };
}

function describeOperation({ summary, query, requestFields, body, answer, emptyResponses, errors }: AdminOperation) {
	const parameters = [
		...Object.entries(query ?? {}).map(([name, parameter]) => ({ name, in: 'query', ...parameter })),
		...(requestFields ?? []).map(name => ({ name, in: 'header', schema: { type: 'string' } })),
	];
	return {
		summary,
		...(parameters.length > 0 && { parameters }),
		...(body && { requestBody: { required: true, content: contentOf(body) } }),
		responses: {
			200: {
				description: answer.description,
				...(answer.responseFields && {
					headers: Object.fromEntries(answer.responseFields.map(name => [name, { schema: { type: 'string' } }])),
				}),
				content: contentOf(
					Object.fromEntries([answer.type, ...(answer.otherTypes ?? [])].map(type => [type, answer.schema])),
				),
			},
			...Object.fromEntries(
				Object.entries(emptyResponses ?? {}).map(([status, description]) => [status, { description }]),
			),
			...errorResponses([...COMMON_ERROR_CODES, ...(errors ?? [])]),
		},
	};
}

function contentOf(schemas: { readonly [mediaType: string]: JsonSchema }) {
	return Object.fromEntries(Object.entries(schemas).map(([type, schema]) => [type, { schema }]));
}

/** Returns one response for each status, with the error codes that it may have. */
function errorResponses(codes: readonly AdminErrorCode[]) {
	const codesByStatus = new Map<number, AdminErrorCode[]>();
	for (const code of new Set(codes)) {
		const { status } = ADMIN_ERRORS[code];
		codesByStatus.set(status, [...(codesByStatus.get(status) ?? []), code]);
	}
	return Object.fromEntries(
		[...codesByStatus].map(([status, codesOfStatus]) => [
			status,
			{
				description: codesOfStatus.map(code => `\`${code}\`: ${ADMIN_ERRORS[code].description}`).join('\n\n'),
				content: contentOf({ 'application/json': { $ref: '#/components/schemas/Error' } }),
			},
		]),
	);
}

/** Returns the endpoint `/openapi.json`. Its description of the API includes the endpoint itself. */
export function createOpenapiEndpoint(endpoints: readonly AdminEndpoint[]): AdminEndpoint {
	const endpoint: AdminEndpoint = {
		path: '/openapi.json',
		operationsByMethod: {
			GET: {
				summary: 'Returns this description.',
				answer: { description: 'OpenAPI 3.1.', type: 'application/json', schema: { type: 'object' } },
				run: x => answerJson(x, 200, JSON.stringify(describeApi([...endpoints, endpoint]))),
			},
		},
	};
	return endpoint;
}
