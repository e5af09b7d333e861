/**
 * A container image for several processors, as an OCI image layout in one tar file, made without a container engine. It contains
 * the libraries that the program needs, the certificates of public authorities, and the program, but no shell.
 *
 * See the OCI image format specification: image-layout.md, image-index.md, manifest.md, config.md.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { list, type ReadEntry } from 'tar';
import { type DownloadedPackage, downloadPackages } from './debian-archive.ts';
import { type CompressionLevel, compressGzip, type PackedFile, tarFile } from './tar-file.ts';

/**
 * The number of the user that the program runs as. Kubernetes requires a number, because the user has a name only inside the
 * image.
 */
export const IMAGE_USER_ID = 65532;

/** The Debian packages from which the image contains files. */
const DEBIAN_PACKAGES = ['ca-certificates', 'libc6', 'libgcc-s1', 'libstdc++6'] as const;

/**
 * Matches the files of Debian packages that the image contains: shared libraries (without converters of character sets),
 * certificates of authorities, and licenses.
 */
const IMAGE_FILES_PATTERN =
	/^(?:(?:usr\/)?lib(?:64)?\/(?:[\w-]+\/)?[\w.+-]+\.so(?:\.[\d.]+)?|usr\/share\/(?:ca-certificates\/mozilla\/.*|doc\/[^/]+\/copyright))$/;

const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const CONFIGURATION_TYPE = 'application/vnd.oci.image.config.v1+json';
const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar+gzip';

/**
 * The configuration in the image: a site that shows that the image works, and the probes of a container platform on a separate
 * port.
 */
const CONFIGFILE = `:8080 {
	respond "svc is running. Its configuration is /etc/svc/Configfile."
}

:9090 {
	live /live
	ready /ready
}
`;

/** The part of the image that is specific to one processor. */
export interface ImagePart {
	readonly architecture: 'amd64' | 'arm64';
	readonly program: Buffer;
	/** The files from Debian's packages. */
	readonly libraries: readonly PackedFile[];
}

/** Options for building the image for all processors. */
export interface ImageOptions {
	readonly release: string;
	readonly parts: readonly ImagePart[];
	/** The texts of all licenses. */
	readonly licenses: string;
	/** The time of all files in the image, in seconds since 1970. */
	readonly timeSeconds: number;
	readonly compressionLevel: CompressionLevel;
}

/** A reference to content by its digest. */
interface Descriptor {
	readonly mediaType: string;
	readonly digest: string;
	readonly size: number;
	readonly [field: string]: unknown;
}

/** Downloads the Debian packages of the image. Returns the packages, and those of their files that belong in the image. */
export async function imageLibraries(
	folder: string,
	architecture: ImagePart['architecture'],
): Promise<{ readonly files: PackedFile[]; readonly packages: readonly DownloadedPackage[] }> {
	mkdirSync(folder, { recursive: true });
	const packages = downloadPackages(folder, architecture, DEBIAN_PACKAGES);
	const files: PackedFile[] = [];
	for (const { file } of packages) files.push(...(await imageFilesOf(file)));
	const certificateFiles = files.filter(({ path }) => path.startsWith('usr/share/ca-certificates/'));
	const certificateBundle = certificateFiles.map(({ content }) => String(content).trimEnd()).join('\n');
	return {
		files: [
			...files.filter(file => !certificateFiles.includes(file)),
			{ path: 'etc/ssl/certs/ca-certificates.crt', content: `${certificateBundle}\n` },
		],
		packages,
	};
}

/** Returns the files of a Debian package that belong in the image. */
async function imageFilesOf(packageFile: string): Promise<PackedFile[]> {
	const folder = mkdtempSync(`${packageFile}-`);
	try {
		const archive = path.join(folder, 'data.tar');
		const result = spawnSync('sh', ['-c', 'dpkg-deb --fsys-tarfile "$1" >"$2"', 'sh', packageFile, archive], {
			encoding: 'utf8',
		});
		if (result.status !== 0) throw new Error(`dpkg-deb cannot read ${packageFile}:\n${result.stderr}`);
		const filePromises: Promise<PackedFile>[] = [];
		const onReadEntry = (entry: ReadEntry): void => {
			const name = path.normalize(entry.path);
			if (!IMAGE_FILES_PATTERN.test(name)) entry.resume();
			else if (entry.type === 'SymbolicLink') filePromises.push(Promise.resolve({ path: name, link: entry.linkpath! }));
			else if (entry.type === 'File') {
				const mode = entry.mode ?? 0o644;
				filePromises.push(entry.concat().then(content => ({ path: name, mode, content: Buffer.from(content) })));
			}
		};
		await list({ file: archive, onReadEntry });
		return await Promise.all(filePromises);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** Returns the tar file of the image layout. */
export async function ociImage({
	release,
	parts,
	licenses,
	timeSeconds,
	compressionLevel,
}: ImageOptions): Promise<Buffer> {
	const blobs = new Map<string, Buffer>();
	const addBlob = (mediaType: string, content: Buffer | object): Descriptor => {
		const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
		const digest = createHash('sha256').update(bytes).digest('hex');
		blobs.set(`blobs/sha256/${digest}`, bytes);
		return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
	};
	const created = new Date(timeSeconds * 1000).toISOString().replace('.000', '');
	const annotations = {
		'org.opencontainers.image.title': 'svc',
		'org.opencontainers.image.version': release.replace(/^v/, ''),
		'org.opencontainers.image.licenses': 'Apache-2.0',
		'org.opencontainers.image.created': created,
	};
	const manifests = await Promise.all(
		parts.map(async ({ architecture, program, libraries }) => {
			// The program comes last, so that releases share the layer of libraries.
			const layers = [
				tarFile([...libraries, ...SYSTEM_FILES], timeSeconds),
				tarFile(
					[
						{ path: 'etc/svc/Configfile', content: CONFIGFILE },
						{ path: 'usr/bin/svc', mode: 0o755, content: program },
						{ path: 'usr/share/doc/svc/LICENSES', content: licenses },
						{ path: 'var/lib/svc', mode: 0o700, owner: IMAGE_USER_ID },
					],
					timeSeconds,
				),
			];
			const packedLayers = await Promise.all(layers.map(layer => compressGzip(layer, compressionLevel)));
			const configurationDescriptor = addBlob(CONFIGURATION_TYPE, {
				created,
				architecture,
				os: 'linux',
				config: {
					User: `${IMAGE_USER_ID}:${IMAGE_USER_ID}`,
					ExposedPorts: { '8080/tcp': {}, '9090/tcp': {} },
					Env: [
						'PATH=/usr/bin',
						'HOME=/var/lib/svc',
						'SVC_TLS_STORE=/var/lib/svc/store',
						'STATE_DIRECTORY=/var/lib/svc',
						'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt',
					],
					Entrypoint: ['svc'],
					Cmd: ['run', '--config', '/etc/svc/Configfile'],
					Volumes: { '/var/lib/svc': {} },
					WorkingDir: '/var/lib/svc',
					Labels: annotations,
					StopSignal: 'SIGTERM',
				},
				rootfs: {
					type: 'layers',
					diff_ids: layers.map(layer => `sha256:${createHash('sha256').update(layer).digest('hex')}`),
				},
				history: ['libraries and certificate authorities of Debian', 'svc'].map(comment => ({ created, comment })),
			});
			const manifestDescriptor = addBlob(MANIFEST_TYPE, {
				schemaVersion: 2,
				mediaType: MANIFEST_TYPE,
				config: configurationDescriptor,
				layers: packedLayers.map(layer => addBlob(LAYER_TYPE, layer)),
				annotations,
			});
			return { ...manifestDescriptor, platform: { architecture, os: 'linux' } };
		}),
	);
	const indexDescriptor = addBlob(INDEX_TYPE, { schemaVersion: 2, mediaType: INDEX_TYPE, manifests, annotations });
	const nameAnnotation = { 'org.opencontainers.image.ref.name': release.replace(/^v/, '').replaceAll('+', '-') };
	return tarFile(
		[
			{ path: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
			{
				path: 'index.json',
				content: JSON.stringify({
					schemaVersion: 2,
					mediaType: INDEX_TYPE,
					manifests: [{ ...indexDescriptor, annotations: nameAnnotation }],
				}),
			},
			...[...blobs].map(([path, content]) => ({ path, content })),
		],
		timeSeconds,
	);
}

/** Files that programs expect on any system, in addition to libraries. */
const SYSTEM_FILES: readonly PackedFile[] = [
	{ path: 'etc/group', content: `root:x:0:\nsvc:x:${IMAGE_USER_ID}:\n` },
	{ path: 'etc/nsswitch.conf', content: 'passwd: files\ngroup: files\nhosts: files dns\n' },
	{
		path: 'etc/passwd',
		content: `root:x:0:0:root:/:/nonexistent\nsvc:x:${IMAGE_USER_ID}:${IMAGE_USER_ID}:svc:/var/lib/svc:/nonexistent\n`,
	},
	{ path: 'tmp', mode: 0o1777 },
];
