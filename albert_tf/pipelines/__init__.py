"""From a path to answers in one line: `albert_tf.pipeline(task, path)`."""

from albert_tf.pipelines.table import PIPELINES, PipelineTask, task_of
from albert_tf.pipelines.text_pipeline import Pipeline, pipeline

__all__ = ["PIPELINES", "Pipeline", "PipelineTask", "pipeline", "task_of"]
