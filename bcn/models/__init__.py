"""The models of the paper, by the names of its tables, and ours. Each module registers rows of one data set."""

# In the order of the tables.
from bcn.models import scaled_mnist as scaled_mnist  # isort: skip
from bcn.models import stl10 as stl10  # isort: skip
from bcn.models import sort_of_clevr as sort_of_clevr  # isort: skip
from bcn.models import sort_of_clevr_baselines as sort_of_clevr_baselines  # isort: skip
from bcn.models import sort_of_clevr_states as sort_of_clevr_states  # isort: skip
from bcn.models import clevr as clevr  # isort: skip
from bcn.models import drawn as drawn  # isort: skip
from bcn.models import drop_in as drop_in  # isort: skip
from bcn.models import unet as unet  # isort: skip
from bcn.models import centre_net as centre_net  # isort: skip
