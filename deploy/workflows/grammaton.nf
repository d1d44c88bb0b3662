// Nextflow: trains a job with several seeds.
//
//   nextflow run deploy/workflows/grammaton.nf --job JOB.toml --corpus CORPUS --seeds 1,2,3
//
// results/SEED has the results of a seed. A task that is tried again begins in another folder, so checkpoints are in
// params.checkpoints, which all machines share: a folder or an object store (s3://bucket/checkpoints).
params.job = 'job.toml'
params.corpus = 'corpus.txt'
params.seeds = '1,2,3'
params.checkpoints = "${launchDir}/checkpoints"

process train {
    tag "seed ${seed}"
    publishDir 'results', mode: 'copy'
    cpus 4
    errorStrategy 'retry'
    maxRetries 3

    input:
    path job
    path corpus
    val seed

    output:
    path "${seed}"

    script:
    """
    grammaton train ${job} --out ${seed} --resume --quiet --workers ${task.cpus} \\
        --set inference.seed=${seed} --set corpus.path=${corpus} --set output.checkpoints=${params.checkpoints}/${seed}
    """
}

workflow {
    seeds = Channel.of(params.seeds.toString().split(',')).flatten()
    train(file(params.job), file(params.corpus), seeds)
}
